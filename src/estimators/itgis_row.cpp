// itgis as a row of the methods.
#include "deeptail/itgis.h"
#include "estimators/method_list.h"

namespace deeptail {

namespace {

constexpr const SettingRow* kItgisSettings[] = {&kBudget, &kTemperature};

Method make_itgis(SettingReader& s) {
  ItgisConfig config;
  double temperature = 0.0;
  s.take(kBudget, config.samples);
  s.take(kTemperature, temperature);
  config.validate();
  return {
      .settle = settle_temperature(temperature, kItgisRow.name),
      .needs_tables = true,
      .needs_next_token = true,
      .unit = "samples",
      .work = [config](const Question&) { return config.samples; },
      .run =
          [config, temperature](const Question& q, std::uint64_t seed, ThreadPool& pool, const Watch& watch) {
            ItgisConfig c = config;
            c.seed = seed;
            c.temperature = temperature_of(temperature, kItgisRow.name, q);
            Estimate estimate = itgis(*q.model, *q.tables(), *q.next_token(), c, pool, watch);
            tell_temperature(estimate, c.temperature);
            return estimate;
          }};
}

}  // namespace

constinit const MethodRow kItgisRow{.name = "itgis",
                                    .help = "importance sampling by gradients",
                                    .settings = kItgisSettings,
                                    .colour = 5,
                                    .make = make_itgis};

}  // namespace deeptail
