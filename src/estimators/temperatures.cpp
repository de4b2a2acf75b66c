// The shipped table of temperatures.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <mutex>

#include "core/data_places.h"
#include "estimators/read_tune.h"

namespace deeptail {

namespace {
constexpr const char* kTemperaturesFormat = "deeptail-temperatures-1";
constexpr const char* kTemperaturesFile = "temperatures.json";
constexpr std::uint64_t kMostTunedTargets = std::uint64_t{1} << 32;

using TemperatureTable = std::vector<ChosenTemperature>;

// Read once, and again when the file is another one.
std::shared_ptr<const TemperatureTable> table_of(const std::string& path) {
  static std::mutex mutex;
  static std::string read_path;
  static std::filesystem::file_time_type read_time;
  static std::shared_ptr<const TemperatureTable> table;
  const std::lock_guard lock(mutex);
  const auto time = std::filesystem::last_write_time(path);
  if (table != nullptr && read_path == path && read_time == time) return table;
  const InputFile file(path);
  table = std::make_shared<const TemperatureTable>(parse_temperatures(file.text(), file.path()));
  read_path = path;
  read_time = time;
  return table;
}

}  // namespace

TuneCell read_tune_cell(const JsonNode& row) {
  TuneCell cell{row.at("model").text(), row.at("dist").text(), row.at("method").text(),
                row.at("temperature").number()};
  if (!(cell.temperature > 0.0)) row.at("temperature").fail_expected("a positive number");
  return cell;
}

TuneResult read_tune_result(const JsonNode& row) {
  return {.loss = row.at("loss").number(),
          .targets = row.at("targets").count(0, kMostTunedTargets),
          .zeros = row.at("zeros").count(0, kMostTunedTargets)};
}

std::vector<ChosenTemperature> parse_temperatures(std::string_view text, std::string_view where) {
  const Json document = parse_json(text, where);
  const JsonNode json(document, where);
  if (json.at("format").text() != kTemperaturesFormat) json.at("format").fail_expected(kTemperaturesFormat);
  const JsonNode rows = json.at("temperatures");
  std::vector<ChosenTemperature> out;
  for (std::size_t i = 0; i < rows.array_size(); ++i) {
    const JsonNode row = rows.element(i);
    out.push_back({.cell = read_tune_cell(row), .result = read_tune_result(row)});
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
  for (const ChosenTemperature& c : *table_of(path))
    if (c.cell.method == method && c.cell.model == model && c.cell.dist == dist) return c.cell.temperature;
  return std::nullopt;
}

}  // namespace deeptail
