// mhis as a row of the methods.
#include <algorithm>

#include "deeptail/mhis.h"
#include "estimators/method_list.h"

namespace deeptail {

namespace {

constexpr SettingRow kChains{.key = "chains", .help = "Chains", .usual = "32"};
constexpr SettingRow kBurnIn{
    .key = "burn_in",
    .help = "Steps of every chain before its samples count (default 1024, fewer for a small budget)",
    .least = 0};
constexpr SettingRow kNormaliser{.key = "normaliser",
                                 .help = "How the chains' law is normalised",
                                 .kind = SettingKind::kChoice,
                                 .words = EnumNames<Normaliser>::kAll,
                                 .usual = "harmonic"};
constexpr const SettingRow* kMhisSettings[] = {&kBudget, &kTemperature, &kChains, &kBurnIn, &kNormaliser};

// The published burn-in belongs to the published number of samples, twice as many. For a smaller budget it is
// in proportion, and so are the plain inputs: what is done stays near what was asked for.
MhisConfig within_budget(MhisConfig config, bool burn_in_set) {
  const std::uint64_t samples = config.samples;
  if (!burn_in_set)
    config.burn_in = std::min(config.burn_in, samples / std::max<std::size_t>(2, 2 * config.chains));
  config.bound_inputs = std::min<std::uint64_t>(config.bound_inputs, samples);
  config.bridge_inputs =
      std::min<std::uint64_t>(config.bridge_inputs, std::max<std::uint64_t>(samples, 2 * config.chains));
  return config;
}

Method make_mhis(SettingReader& s) {
  MhisConfig config;
  double temperature = 0.0;
  s.take(kBudget, config.samples);
  s.take(kTemperature, temperature);
  s.take(kChains, config.chains);
  const bool burn_in_set = s.take(kBurnIn, config.burn_in);
  const std::uint64_t usual = config.burn_in;
  config = within_budget(config, burn_in_set);
  s.set(kBurnIn, config.burn_in);
  s.take(kNormaliser, config.normaliser);
  config.validate();
  const std::uint64_t work = config.work();
  const bool short_burn_in = config.burn_in < usual;
  return {.settle = settle_temperature(temperature, kMhisRow.name),
          .needs_tables = true,
          .needs_next_token = true,
          .unit = "samples",
          .work = [work](const Question&) { return work; },
          .run =
              [config, temperature, short_burn_in](const Question& q, std::uint64_t seed, ThreadPool& pool,
                                                   const Watch& watch) {
                MhisConfig c = config;
                c.seed = seed;
                c.temperature = temperature_of(temperature, kMhisRow.name, q);
                Estimate estimate = mhis(*q.model, *q.tables(), *q.next_token(), c, pool, watch);
                tell_temperature(estimate, c.temperature);
                if (short_burn_in)
                  estimate.warnings.push_back(fmt::format(
                      "the budget is small: chains burn in for {} steps only and may remember their start",
                      c.burn_in));
                return estimate;
              }};
}

}  // namespace

constinit const MethodRow kMhisRow{.name = "mhis",
                                   .help = "importance sampling by gradients, with chains",
                                   .settings = kMhisSettings,
                                   .colour = 6,
                                   .make = make_mhis};

}  // namespace deeptail
