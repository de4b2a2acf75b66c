// Random texts over few letters, so that patterns are met.
#pragma once

#include <random>
#include <string>
#include <string_view>

namespace deeptail {

inline std::string random_text(std::mt19937& numbers, std::size_t longest, std::string_view letters) {
  std::string text(numbers() % (longest + 1), ' ');
  for (char& c : text) c = letters[numbers() % letters.size()];
  return text;
}

}  // namespace deeptail
