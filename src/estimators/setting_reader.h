// Settings as text, read by a method.
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "deeptail/methods.h"

namespace deeptail {

// The value of a setting whose row has checked it.
double number_in(std::string_view text);
std::uint64_t count_in(std::string_view text);

// Hands settings out by their rows. All that were given have been checked by then.
class SettingReader {
 public:
  // Throws InputError for a setting that the method does not have, or that does not fit.
  SettingReader(const MethodRow& method, const std::vector<Setting>& settings);

  // Leaves `value`, the default, as it is where the setting is not given. Returns whether it is. A default of
  // 0 leaves it to the method.
  template <class T>
  bool take(const SettingRow& row, T& value) {
    const Setting* given = find(row);
    if constexpr (std::is_enum_v<T>) {
      if (given != nullptr) value = *value_named<T>(given->value);
      set(row, std::string(name_of(value)));
    } else if (row.kind == SettingKind::kCount) {
      if (given != nullptr) value = static_cast<T>(count_in(given->value));
      set(row, value == T{} ? SettingValue() : SettingValue(static_cast<std::uint64_t>(value)));
    } else {
      if (given != nullptr) value = static_cast<T>(number_in(given->value));
      set(row, value == T{} ? SettingValue() : SettingValue(static_cast<double>(value)));
    }
    return given != nullptr;
  }
  // What a setting is in the end, where that is not what was taken.
  void set(const SettingRow& row, SettingValue value);

  // Of all settings, in the method's order.
  SettingValues values() const { return values_; }

 private:
  const Setting* find(const SettingRow& row) const;

  const MethodRow& method_;
  const std::vector<Setting>& settings_;
  SettingValues values_;
};

// The value of a key that the method has.
void set_value(SettingValues& values, const SettingRow& row, SettingValue value);

}  // namespace deeptail
