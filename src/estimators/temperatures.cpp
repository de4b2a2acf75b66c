// The shipped table of temperatures.
#include <algorithm>
#include <cmath>

#include "core/data_places.h"
#include "core/json.h"
#include "deeptail/temperatures.h"

namespace deeptail {

namespace {
constexpr const char* kTemperaturesFormat = "deeptail-temperatures-1";
constexpr const char* kTemperaturesFile = "temperatures.json";
}  // namespace

std::vector<ChosenTemperature> parse_temperatures(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  std::vector<ChosenTemperature> out;
  try {
    if (json.at("format") != kTemperaturesFormat)
      throw InputError("{}: format: expected {}", where, kTemperaturesFormat);
    for (const Json& row : json.at("temperatures")) {
      ChosenTemperature& c = out.emplace_back();
      c.cell = {row.at("model"), row.at("dist"), row.at("method"), row.at("temperature")};
      c.result = {row.at("loss"), row.at("targets"), row.at("zeros"), 0.0};
      if (!(c.cell.temperature > 0.0 && std::isfinite(c.cell.temperature)))
        throw InputError("{}: temperature {}: expected a positive number", where, c.cell.temperature);
    }
  } catch (const Json::exception& e) {
    throw InputError("{}: not a table of temperatures: {}", where, printable(e.what()));
  }
  return out;
}

std::string to_json(const std::vector<ChosenTemperature>& chosen) {
  std::string out = fmt::format("{{\n \"format\": \"{}\",\n \"temperatures\": [", kTemperaturesFormat);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const auto& [cell, result] = chosen[i];
    out += fmt::format(
        "{}\n  {{\"model\": {}, \"dist\": {}, \"method\": {}, \"temperature\": {}, \"loss\": {:.4g}, "
        "\"targets\": "
        "{}, \"zeros\": {}}}",
        i > 0 ? "," : "", json_text(Json(cell.model)), json_text(Json(cell.dist)),
        json_text(Json(cell.method)), cell.temperature, result.loss, result.targets, result.zeros);
  }
  return out + "\n ]\n}\n";
}

std::string shipped_temperatures_path() {
  for (const auto& place : data_places("suites"))
    if (const auto path = place / kTemperaturesFile; std::filesystem::is_regular_file(path))
      return path.string();
  return "";
}

std::optional<double> shipped_temperature(std::string_view method, std::string_view model,
                                          std::string_view dist) {
  const std::string path = shipped_temperatures_path();
  if (path.empty()) return std::nullopt;
  const MappedFile file(path);
  for (const ChosenTemperature& c : parse_temperatures(file.text(), file.path()))
    if (c.cell.method == method && c.cell.model == model && c.cell.dist == dist) return c.cell.temperature;
  return std::nullopt;
}

}  // namespace deeptail
