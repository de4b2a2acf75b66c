#include "estimators/setting_reader.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/json.h"
#include "core/parse_count.h"

namespace deeptail {

namespace {

std::optional<double> number_text(std::string_view text) {
  double value = 0.0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string either_of(std::span<const std::string_view> words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i)
    out += fmt::format("{}{}", i == 0 ? "" : i + 1 == words.size() ? " or " : ", ", words[i]);
  return out;
}

}  // namespace

std::uint64_t count_in(std::string_view text) { return text == "0" ? 0 : parse_count(text, ""); }
double number_in(std::string_view text) { return *number_text(text); }

std::string SettingRow::flag() const {
  std::string name = "--" + std::string(key);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string SettingRow::expected() const {
  if (kind == SettingKind::kChoice) return either_of(words);
  if (kind == SettingKind::kCount)
    return fmt::format("a whole number from {} to 2^62, such as 1000000, 1e6 or 2^20", least);
  const bool no_high = high == std::numeric_limits<double>::max();
  if (with_ends)
    return no_high ? fmt::format("a number from {}", low) : fmt::format("a number from {} to {}", low, high);
  return no_high ? fmt::format("a number above {}", low)
                 : fmt::format("a number above {} and below {}", low, high);
}

void SettingRow::check(std::string_view value, std::string_view where) const {
  const auto fits = [&] {
    if (kind == SettingKind::kChoice) return std::find(words.begin(), words.end(), value) != words.end();
    if (kind == SettingKind::kCount)
      return (least == 0 && value == "0") || parse_count(value, where) >= least;
    const auto number = number_text(value);
    return number && (with_ends ? *number >= low && *number <= high : *number > low && *number < high);
  };
  if (!fits()) throw InputError("{}: expected {}, found \"{}\"", where, expected(), printable(value));
}

SettingReader::SettingReader(const MethodRow& method, const std::vector<Setting>& settings)
    : method_(method), settings_(settings) {
  std::vector<std::string_view> keys;
  for (const SettingRow* row : method.settings) {
    keys.push_back(row->key);
    values_.emplace_back(row->key, SettingValue());
  }
  for (const Setting& s : settings) {
    const SettingRow* row = method.setting(s.key);
    if (row == nullptr)
      throw InputError("{}: method {} has no setting \"{}\"; it has {}", s.where, method.name,
                       printable(s.key), fmt::join(keys, ", "));
    row->check(s.value, s.where);
  }
}

const Setting* SettingReader::find(const SettingRow& row) const {
  if (method_.setting(row.key) != &row)
    throw std::logic_error(
        fmt::format("{} reads the setting {}, which is not in its row", method_.name, row.key));
  for (const Setting& s : settings_)
    if (s.key == row.key) return &s;
  return nullptr;
}

void SettingReader::set(const SettingRow& row, SettingValue value) {
  set_value(values_, row, std::move(value));
}

void set_value(SettingValues& values, const SettingRow& row, SettingValue value) {
  for (auto& [key, at] : values)
    if (key == row.key) at = std::move(value);
}

}  // namespace deeptail
