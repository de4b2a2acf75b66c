#include <algorithm>
#include <cmath>

#include "core/stopwatch.h"
#include "deeptail/estimators.h"
#include "estimators/method_list.h"

namespace deeptail {

namespace {

// mc's inputs are numbered from here. Counts (truth) end before 2^62 and captured activations lie between,
// so no seed gives mc an input that another of them saw with that seed.
constexpr std::uint64_t kFirstMcSample = std::uint64_t{1} << 63;

}  // namespace

void McConfig::validate() const {
  if (budget == 0 || budget > std::uint64_t{1} << 62)
    throw InputError("budget {}: expected at least one forward pass, at most 2^62", budget);
}

Estimate mc(const Transformer& model, const Distribution& dist, const Target& target, const McConfig& config,
            ThreadPool& pool, const Watch& watch) {
  config.validate();
  const Stopwatch stopwatch;
  Estimate estimate{
      .method = "mc", .target = target.ids(), .guarantee = Guarantee::kUnbiased, .seed = config.seed};
  InputRunner runner(model, dist, config.seed, pool);
  std::uint64_t hits = 0;
  const auto count_hits = [&](std::uint64_t first, std::span<const TokenId> said) {
    for (std::size_t i = 0; i < said.size(); ++i) {
      if (!target.contains(said[i])) continue;
      if (hits++ >= config.max_triggers) continue;
      const auto input = runner.input(i);
      estimate.triggers.push_back({.sample = first + i, .tokens = {input.begin(), input.end()}});
    }
  };
  const std::uint64_t n = for_each_batch(runner, kFirstMcSample, config.budget, count_hits, watch);

  const Interval interval = clopper_pearson(hits, n, estimate.confidence);
  estimate.log_p = std::log(static_cast<double>(hits) / static_cast<double>(n));
  estimate.log_low = std::log(interval.low);
  estimate.log_high = std::log(interval.high);
  if (hits == 0) estimate.status = Status::kNotReachedUpperBound;
  if (hits > 0 && hits < 10)
    estimate.warnings.push_back(
        fmt::format("only {} of {} inputs gave the target: the interval is wide", hits, n));
  if (n < config.budget)
    estimate.warnings.push_back(fmt::format("ended after {} of {} inputs", n, config.budget));
  estimate.cost.forward = n;
  estimate.cost.flops = static_cast<double>(n) * forward_flops(model.config(), dist.length());
  estimate.cost.forward_equivalents = static_cast<double>(n);
  estimate.cost.seconds = stopwatch.seconds();
  return estimate;
}

namespace {

constexpr const SettingRow* kMcSettings[] = {&kBudget};

Method make_mc(SettingReader& s) {
  McConfig config;
  s.take(kBudget, config.budget);
  config.validate();
  return {.unit = "inputs",
          .work = [config](const ModelConfig&, const Distribution&) { return config.budget; },
          .run =
              [config](const MethodInput& in, const Target& target, std::uint64_t seed, ThreadPool& pool,
                       const Watch& watch) {
                McConfig c = config;
                c.seed = seed;
                return mc(*in.model, *in.dist, target, c, pool, watch);
              }};
}

}  // namespace

constinit const MethodRow kMcRow{
    .name = "mc", .help = "plain sampling", .settings = kMcSettings, .colour = 7, .make = make_mc};

}  // namespace deeptail
