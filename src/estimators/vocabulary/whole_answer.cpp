// All tokens of a model that was loaded: rows that say where they are from, and what is known of any token.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/json.h"
#include "deeptail/all_tokens.h"

namespace deeptail {

void AllTokensConfig::validate() const {
  if (!(budget >= 0.0) || budget > 1e15 || (budget > 0.0 && budget < 1e4))
    throw InputError("budget {}: expected at least 1e4 forward passes for all tokens, at most 1e15", budget);
  if (!(above > 0.0) || !(above < 1.0))
    throw InputError("above {}: expected a probability between 0 and 1", above);
  if (!(below > above) || !(below <= 1.0))
    throw InputError("below {}: expected a probability above {}, at most 1", below, above);
}

double all_tokens_budget(const ModelConfig& config, const Distribution& dist, Device device) {
  constexpr double kUsual = 2.5e7, kMostFlopsForAll = 4e14, kLeastForAll = 1e5, kDeviceTimes = 1.6;
  const double budget =
      std::clamp(kMostFlopsForAll / forward_flops(config, dist.length()), kLeastForAll, kUsual);
  return device == Device::kCuda ? kDeviceTimes * budget : budget;
}

AllTokens estimate_all(const LoadedModel& model, const InputLaw& law, const AllTokensConfig& wanted,
                       ThreadPool& pool, const Watch& watch, Device device) {
  const Distribution* dist = law.tables();
  if (dist == nullptr)
    throw InputError("all tokens at once: {}: expected a distribution of independent tokens",
                     printable(law.facts().name));
  AllTokensConfig config = wanted;
  if (config.budget == 0.0) config.budget = all_tokens_budget(model.config(), *dist, device);
  AllTokens all = estimate_all(model.transformer, *dist, config, pool, watch, device);
  const auto add_origin = [&](Estimate& e) {
    e.event = NextToken(Target(e.target, model.head())).text();
    e.provenance = provenance_of(model, law);
    e.provenance.device = name_of(device);
    e.settings = {{"all", std::string("true")},
                  {"budget", static_cast<std::uint64_t>(config.budget)},
                  {"above", config.above},
                  {"below", config.below}};
  };
  for (Estimate& e : all.rows) add_origin(e);
  for (Estimate& e : all.outside) add_origin(e);
  return all;
}

Estimate estimate_of(const AllTokens& all, TokenId token) {
  for (const auto* rows : {&all.rows, &all.outside})
    for (const Estimate& e : *rows)
      if (e.target.front() == token) return e;
  Estimate e{.method = "shared", .target = {token}, .guarantee = Guarantee::kUnbiased};
  e.log_p = e.log_low = -std::numeric_limits<double>::infinity();
  e.log_high = all.log_unseen_high;
  e.status = Status::kNotReachedUpperBound;
  e.diagnostics = {{"count", 0.0}, {"samples", static_cast<double>(all.samples)}};
  return e;
}

std::string rest_json(const AllTokens& all) {
  return json_text(OrderedJson{{"rows", all.rows.size()},
                               {"outside", all.outside.size()},
                               {"unseen", all.unseen},
                               {"unseen_below", std::exp(all.log_unseen_high)},
                               {"plain_draws", all.samples},
                               {"forward_equivalents", all.cost.forward_equivalents},
                               {"seconds", all.cost.seconds},
                               {"stopped", all.stopped}});
}

}  // namespace deeptail
