// Temperatures of itgis and mhis for known pairs of model and distribution: the shipped table.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/core.h"

namespace [[gnu::visibility("default")]] deeptail {

// One cell of the search: one method at one temperature on the targets of one model and distribution.
struct TuneCell {
  std::string model = {}, dist = {}, method = {};  // itgis or mhis
  double temperature = 1.0;
  friend auto operator<=>(const TuneCell&, const TuneCell&) = default;
};
struct TuneResult {
  double loss = 0.0;  // tune_loss over the targets
  std::size_t targets = 0, zeros = 0;
  double seconds = 0.0;
};

// The table of suites/temperatures.json.
struct ChosenTemperature {
  TuneCell cell = {};
  TuneResult result = {};
};
std::vector<ChosenTemperature> parse_temperatures(std::string_view json, std::string_view where);
std::string to_json(const std::vector<ChosenTemperature>& chosen);
// The file of the table, or "" where there is none.
std::string shipped_temperatures_path();
// The table's temperature for this method, model and distribution, by name; nothing for others.
std::optional<double> shipped_temperature(std::string_view method, std::string_view model,
                                          std::string_view dist);

}  // namespace deeptail
