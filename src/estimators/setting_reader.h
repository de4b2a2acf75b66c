// Settings as text, read by a method.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "core/parse_count.h"
#include "deeptail/methods.h"

namespace deeptail {

// Hands settings out by key, and refuses what was never asked for.
class SettingReader {
 public:
  explicit SettingReader(const std::vector<Setting>& settings) : settings_(settings) {}

  const Setting* find(const char* key) {
    known_.push_back(key);
    for (const Setting& s : settings_)
      if (s.key == key) return &s;
    return nullptr;
  }
  // What a setting is in the end.
  void note(const char* key, SettingValue value) { used_.emplace_back(key, std::move(value)); }
  // Leaves `value` as it is where the setting is not given. 0 leaves it to the method.
  template <class T>
  void count(const char* key, T& value) {
    if (const Setting* s = find(key)) value = static_cast<T>(parse_count(s->value, s->where));
    note(key, value == T{} ? SettingValue() : SettingValue(static_cast<std::uint64_t>(value)));
  }
  void real(const char* key, double& value) {
    if (const Setting* s = find(key)) {
      const auto [stop, error] = std::from_chars(s->value.data(), s->value.data() + s->value.size(), value);
      if (error != std::errc() || stop != s->value.data() + s->value.size())
        throw InputError("{}: expected a number, found \"{}\"", s->where, printable(s->value));
    }
    note(key, value == 0.0 ? SettingValue() : SettingValue(value));
  }
  void positive(const char* key, double& value) {
    real(key, value);
    const Setting* s = find(key);
    known_.pop_back();
    if (s != nullptr && !(value > 0.0 && value < 1e300))
      throw InputError("{}: expected a number above 0, found \"{}\"", s->where, printable(s->value));
  }
  // One of the names that `parse` knows; `value` has the default's.
  template <class T>
  void choice(const char* key, std::optional<T> (*parse)(std::string_view), const char* names, T& value) {
    if (const Setting* s = find(key)) {
      const std::optional<T> parsed = parse(s->value);
      if (!parsed) throw InputError("{} {}: expected {}", s->where, printable(s->value), names);
      value = *parsed;
    }
    note(key, std::string(name_of(value)));
  }
  std::vector<std::string> finish(const std::string& method) const {
    for (const Setting& s : settings_)
      if (std::find(known_.begin(), known_.end(), s.key) == known_.end())
        throw InputError("{}: method {} has no setting \"{}\"; it has {}", s.where, method, printable(s.key),
                         fmt::join(known_, ", "));
    return known_;
  }
  SettingValues used() const { return used_; }

 private:
  const std::vector<Setting>& settings_;
  std::vector<std::string> known_;
  SettingValues used_;
};

}  // namespace deeptail
