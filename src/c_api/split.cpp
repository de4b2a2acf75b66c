// dt_split and dt_split_states: splitting by functions of the caller's, served on its own thread.
#include <cmath>

#include "c_api/asked.h"
#include "c_api/caller.h"
#include "core/json_node.h"
#include "core/parse_count.h"
#include "core/random.h"
#include "deeptail/enum_names.h"
#include "deeptail/split.h"

namespace deeptail::c_api {

namespace {

struct SplitSettings {
  TokensplitConfig config = {};
  std::size_t threads = 0;
  std::string event = "score >= 0";
  std::vector<std::string> events = {};  // of several
  SettingValues told = {};
};

double number_of(const JsonNode& node) {
  return node.value().is_string() ? static_cast<double>(parse_count(node.text(), node.where()))
                                  : node.number();
}
std::size_t count_of(const JsonNode& node) {
  constexpr double kMost = 0x1.0p53;
  const double n = number_of(node);
  if (!(n >= 0.0 && n <= kMost) || n != std::floor(n)) node.fail_expected("a whole number of at least 0");
  return static_cast<std::size_t>(n);
}

std::vector<std::string> names_in(const JsonNode& node) {
  std::vector<std::string> out;
  for (const JsonNode& name : node.elements()) out.push_back(name.text());
  return out;
}

SplitSettings read_split(std::string_view text) {
  const Json document = parse_json(text.empty() ? "{}" : text, "settings");
  JsonNode(document, "settings").expect_object();
  SplitSettings out;
  TokensplitConfig& c = out.config;
  for (const auto& item : document.items()) {
    const std::string& key = item.key();
    const JsonNode node(item.value(), "settings", key);
    if (item.value().is_null()) continue;
    const auto number = [&](double& to) { out.told.emplace_back(key, to = number_of(node)); };
    const auto count = [&](std::size_t& to) {
      out.told.emplace_back(key, std::uint64_t{to = count_of(node)});
    };
    if (key == "budget")
      number(c.budget);
    else if (key == "replicas")
      count(c.replicas);
    else if (key == "rel_error")
      number(c.rel_error);
    else if (key == "seed")
      c.seed = node.count(0, std::numeric_limits<std::uint64_t>::max());
    else if (key == "max_triggers")
      c.max_triggers = count_of(node);
    else if (key == "survive_fraction")
      number(c.survive_fraction);
    else if (key == "forgotten")
      number(c.forgotten);
    else if (key == "particles")
      count(c.particles);
    else if (key == "taper")
      number(c.taper);
    else if (key == "first_draw")
      count(c.first_draw);
    else if (key == "moves")
      count(c.moves);
    else if (key == "tilt") {
      const auto tilt = value_named<Tilting>(node.text());
      if (!tilt) node.fail_expected("auto, none or scan");
      c.tilt = *tilt;
      out.told.emplace_back(key, node.text());
    } else if (key == "threads")
      out.threads = node.count(0, ThreadPool::kMostThreads);
    else if (key == "event")
      out.event = node.text();
    else if (key == "events")
      out.events = names_in(node);
    else
      throw InputError("unknown setting {}", printable(key));
  }
  c.validate();
  return out;
}

std::string tokens_text(std::span<const TokenId> tokens) {
  constexpr std::size_t kShown = 64;
  return fmt::format("[{}{}]", fmt::join(tokens.first(std::min(kShown, tokens.size())), ", "),
                     tokens.size() > kShown ? ", ..." : "");
}

void check_scores(TokenBatch inputs, std::span<const double> out) {
  for (std::size_t i = 0; i < out.size(); ++i)
    if (std::isnan(out[i]) || out[i] == std::numeric_limits<double>::infinity())
      throw InputError("score: expected a finite number or minus infinity, found {} for row {}, tokens {}",
                       out[i], i, tokens_text(inputs.sequence(i)));
}

// A caller's function, on its thread.
BatchScore on_caller(Caller& caller, const dt_scores& scores, dt_score function) {
  if (function == nullptr) return {};
  return [&caller, scores, function](const ScoredRows& rows, std::span<double> out) {
    if (caller.stopped()) return false;
    const std::size_t n = out.size();
    std::vector<double> units(rows.numbers.size());
    for (std::size_t i = 0; i < units.size(); ++i) units[i] = unit_double(rows.numbers[i]);
    const dt_batch batch{.size = sizeof(dt_batch),
                         .n = n,
                         .length = rows.inputs.length,
                         .n_numbers = n == 0 ? 0 : units.size() / n,
                         .tokens = rows.inputs.tokens.data(),
                         .lengths = rows.inputs.lengths.data(),
                         .numbers = units.data(),
                         .which = rows.which.data()};
    int go = 0;
    caller.on_caller([&] { go = function(scores.user, &batch, out.data()); });
    if (go != 1) {
      caller.stop();
      return false;
    }
    check_scores(rows.inputs, out);
    return true;
  };
}

CalledScoresConfig config_of(Caller& caller, const dt_scores& scores, const std::string& event) {
  CalledScoresConfig config{.score = on_caller(caller, scores, scores.score),
                            .exact = on_caller(caller, scores, scores.exact),
                            .near = scores.near,
                            .numbers = scores.numbers,
                            .text = event};
  if (scores.batch > 0) config.batch = scores.batch;
  config.smaller.assign(scores.smaller, scores.smaller + scores.n_smaller);
  return config;
}

bool knows_nothing(const Estimate& e) { return e.replica_log_p.empty() && e.log_high >= 0.0; }

// One estimate as JSON.
std::string split_line(Estimate e, const SplitSettings& asked, const LoadedModel* loaded, const dt_law& law) {
  static const std::optional<NamedTokenizer> none;
  e.settings = asked.told;
  if (loaded != nullptr) e.provenance = provenance_of(*loaded, *law.law);
  return estimate_line(e, loaded == nullptr ? none : loaded->tokenizer);
}

std::string run_split(const dt_law* law, const dt_model* model, const dt_scores& scores,
                      std::string_view settings, const dt_hooks* hooks) {
  require(law, "law");
  const SplitSettings asked = read_split(settings);
  const LoadedModel* loaded = model == nullptr ? nullptr : &model->loaded;
  Estimate e;
  Caller caller(hooks);
  caller.run([&](const Watch& watch) {
    ThreadPool pool(asked.threads);
    CalledScores called(config_of(caller, scores, asked.event));
    e = split(*law->law, called, asked.config, pool, watch,
              loaded == nullptr ? nullptr : &loaded->transformer);
  });
  if (caller.stopped() && knows_nothing(e)) throw StoppedEarly();
  return split_line(std::move(e), asked, loaded, *law);
}

std::string run_split_many(const dt_law* law, const dt_model* model, const dt_scores& scores,
                           std::string_view settings, const dt_hooks* hooks) {
  require(law, "law");
  const SplitSettings asked = read_split(settings);
  const LoadedModel* loaded = model == nullptr ? nullptr : &model->loaded;
  std::vector<std::string> lines(asked.events.size(), "null");
  Caller caller(hooks);
  caller.run([&](const Watch& watch) {
    CalledScores called(config_of(caller, scores, asked.event));
    const auto keep = [&](std::size_t i, Estimate e) {
      if (caller.stopped() && knows_nothing(e)) return;
      lines[i] = split_line(std::move(e), asked, loaded, *law);
      if (!caller.stopped()) caller.tell_result(i, lines[i]);
    };
    split_many(*law->law, called, asked.events, asked.config, {.on_estimate = keep}, watch,
               loaded == nullptr ? nullptr : &loaded->transformer);
  });
  return fmt::format("[{}]", fmt::join(lines, ","));
}

// --- states ---

StateFunctions functions_of(Caller& caller, const dt_states& s) {
  const auto told = [&caller](const auto& call) {
    if (caller.stopped()) return false;
    int go = 0;
    caller.on_caller([&] { go = call(); });
    if (go != 1) caller.stop();
    return go == 1;
  };
  StateFunctions out;
  out.sample = [=](std::uint64_t seed, std::span<std::int64_t> states) {
    return told([&] { return s.sample(s.user, seed, states.size(), states.data()); });
  };
  out.mutate = [=](std::span<const std::int64_t> states, std::uint64_t seed,
                   std::span<std::int64_t> proposals) {
    return told([&] { return s.mutate(s.user, states.data(), states.size(), seed, proposals.data()); });
  };
  out.score = [=](std::span<const std::int64_t> states, std::span<double> scores) {
    if (!told([&] { return s.score(s.user, states.data(), states.size(), scores.data()); })) return false;
    for (std::size_t i = 0; i < scores.size(); ++i)
      if (std::isnan(scores[i]) || scores[i] == std::numeric_limits<double>::infinity())
        throw InputError("score: expected a finite number or minus infinity, found {} for state {}",
                         scores[i], states[i]);
    return true;
  };
  if (s.drop != nullptr)
    out.drop = [=](std::span<const std::int64_t> states) {
      return told([&] { return s.drop(s.user, states.data(), states.size()); });
    };
  return out;
}

SplitStatesConfig read_states_settings(std::string_view text) {
  const Json document = parse_json(text.empty() ? "{}" : text, "settings");
  JsonNode(document, "settings").expect_object();
  SplitStatesConfig c;
  for (const auto& [key, value] : document.items()) {
    const JsonNode node(value, "settings", key);
    if (value.is_null()) continue;
    if (key == "budget")
      c.budget = number_of(node);
    else if (key == "replicas")
      c.replicas = count_of(node);
    else if (key == "seed")
      c.seed = node.count(0, std::numeric_limits<std::uint64_t>::max());
    else if (key == "survive_fraction")
      c.survive_fraction = node.number();
    else if (key == "moves")
      c.moves = count_of(node);
    else if (key == "particles")
      c.particles = count_of(node);
    else if (key == "kept")
      c.kept = count_of(node);
    else
      throw InputError("unknown setting {}", printable(key));
  }
  c.validate();
  return c;
}

std::string run_split_states(const dt_states& states, std::string_view settings, const dt_hooks* hooks) {
  require(reinterpret_cast<const void*>(states.sample), "sample");
  require(reinterpret_cast<const void*>(states.mutate), "mutate");
  require(reinterpret_cast<const void*>(states.score), "score");
  const SplitStatesConfig config = read_states_settings(settings);
  StatesEstimate found;
  Caller caller(hooks);
  caller.run([&](const Watch& watch) { found = split_states(functions_of(caller, states), config, watch); });
  if (caller.stopped() && knows_nothing(found.estimate)) throw StoppedEarly();
  std::string line = estimate_line(std::move(found.estimate), std::nullopt);
  line.pop_back();
  return fmt::format("{},\"states\":[{}]}}", line, fmt::join(found.states, ","));
}

}  // namespace

}  // namespace deeptail::c_api

using namespace deeptail::c_api;

extern "C" {

dt_status dt_split(const dt_law* law, const dt_model* model, const dt_scores* scores, const char* settings,
                   const dt_hooks* hooks, dt_text* out) {
  return guarded([&] {
    require(scores, "scores");
    give_text(run_split(law, model, sized_copy(scores), settings == nullptr ? "" : settings, hooks), out);
  });
}

dt_status dt_split_many(const dt_law* law, const dt_model* model, const dt_scores* scores,
                        const char* settings, const dt_hooks* hooks, dt_text* out) {
  return guarded([&] {
    require(scores, "scores");
    give_text(run_split_many(law, model, sized_copy(scores), settings == nullptr ? "" : settings, hooks),
              out);
  });
}

dt_status dt_split_states(const dt_states* states, const char* settings, const dt_hooks* hooks,
                          dt_text* out) {
  return guarded([&] {
    require(states, "states");
    give_text(run_split_states(sized_copy(states), settings == nullptr ? "" : settings, hooks), out);
  });
}

}  // extern "C"
