// An Estimate as one line of JSON.
#include <cmath>

#include "core/json.h"
#include "deeptail/estimators.h"

namespace deeptail {

namespace {

// JSON has no infinity: it becomes a string.
OrderedJson number(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

OrderedJson json_of(const Level& level) {
  return {{"level", level.level},
          {"survive_fraction", level.survive_fraction},
          {"particles", level.particles},
          {"ancestors", level.ancestors},
          {"sibling_correlation", level.sibling_correlation},
          {"moves", level.moves.moves},
          {"acceptance", level.moves.acceptance()},
          {"step_size", level.moves.step_size},
          {"mean_squared_jump", level.moves.mean_squared_jump},
          {"parent_correlation", level.moves.parent_correlation}};
}

OrderedJson json_of(const Trigger& t) {
  OrderedJson out = {{"sample", t.sample}, {"tokens", t.tokens}, {"text", t.text}, {"margin", t.margin}};
  if (t.answer.empty()) return out;
  out["answer"] = t.answer;
  out["prompt"] = t.said.prompt;
  out["continuation"] = t.said.continuation;
  out["match"] = {t.said.match_begin, t.said.match_end};
  return out;
}

OrderedJson json_of(const SettingValues& settings) {
  OrderedJson out = OrderedJson::object();
  for (const auto& [key, value] : settings) {
    OrderedJson& to = out[key];
    if (const auto* count = std::get_if<std::uint64_t>(&value)) to = *count;
    if (const auto* real = std::get_if<double>(&value)) to = number(*real);
    if (const auto* text = std::get_if<std::string>(&value)) to = *text;
  }
  return out;
}

}  // namespace

std::string to_json(const Estimate& e) {
  OrderedJson levels = OrderedJson::array(), triggers = OrderedJson::array();
  OrderedJson positions = OrderedJson::array(), replicas = OrderedJson::array();
  for (const Level& level : e.levels) levels.push_back(json_of(level));
  for (const Trigger& t : e.triggers) triggers.push_back(json_of(t));
  for (const DecidingPosition& p : e.positions)
    positions.push_back({{"position", p.position},
                         {"token", p.token},
                         {"share", p.share},
                         {"prior", p.prior},
                         {"text", p.text}});
  for (const double log_p : e.replica_log_p) replicas.push_back(std::exp(log_p));
  OrderedJson diagnostics = OrderedJson::object();
  for (const auto& [name, value] : e.diagnostics) diagnostics[name] = number(value);
  OrderedJson out = {{"p", std::exp(e.log_p)},
                     {"log10_p", number(e.log_p / std::log(10.0))},
                     {"ci95", {std::exp(e.log_low), std::exp(e.log_high)}},
                     {"status", name_of(e.status)},
                     {"guarantee", name_of(e.guarantee)},
                     {"method", e.method},
                     {"model", e.provenance.model},
                     {"dist", e.provenance.dist},
                     {"target", e.target},
                     {"event", e.event},
                     {"seed", e.seed},
                     {"settings", json_of(e.settings)},
                     {"cost",
                      {{"forward", e.cost.forward},
                       {"backward", e.cost.backward},
                       {"score_evals", e.cost.score_evals},
                       {"logits", e.cost.logits},
                       {"flops", e.cost.flops},
                       {"forward_equivalents", e.cost.forward_equivalents},
                       {"seconds", e.cost.seconds}}},
                     {"levels", levels},
                     {"warnings", e.warnings},
                     {"diagnostics", diagnostics},
                     {"triggers", triggers},
                     {"positions", positions},
                     {"replicas", replicas},
                     {"certain_low", std::exp(e.log_certain_low)},
                     {"provenance",
                      {{"model_sha256", e.provenance.model_sha256},
                       {"dist_sha256", e.provenance.dist_sha256},
                       {"version", kVersion},
                       {"device", e.provenance.device}}}};
  if (!e.event_json.empty()) {
    out["event"] = OrderedJson(parse_json(e.event_json, "event"));
    out["event"]["says"] = e.event;
    out["law"] = OrderedJson(parse_json(e.law_json, "law"));
    out["cost"]["tokens"] = e.cost.tokens;
  }
  // Decoded tokens need not be valid UTF-8 on their own.
  return json_text(out);
}

}  // namespace deeptail
