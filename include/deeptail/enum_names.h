// The values of an enum by name, as flags, files and results write them: one table per enum, both ways.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>

namespace [[gnu::visibility("default")]] deeptail {

// Specialised beside the enum, with a name for every value in their order:
//   template <> struct EnumNames<Device> { static constexpr std::string_view kAll[] = {"cpu", "cuda"}; };
template <class E>
struct EnumNames {};

template <class E>
concept NamedEnum = requires {
  EnumNames<E>::kAll[0];
};

template <NamedEnum E>
constexpr std::string_view name_of(E value) {
  const auto i = static_cast<std::size_t>(value);
  return i < std::size(EnumNames<E>::kAll) ? EnumNames<E>::kAll[i] : std::string_view();
}

// Nothing for a name that there is not.
template <NamedEnum E>
constexpr std::optional<E> value_named(std::string_view name) {
  const auto& all = EnumNames<E>::kAll;
  const auto found = std::find(std::begin(all), std::end(all), name);
  if (found == std::end(all)) return std::nullopt;
  return static_cast<E>(found - std::begin(all));
}

}  // namespace deeptail
