// The shipped distributions.
#pragma once

#include <array>
#include <string>

#include "deeptail/inputs.h"

namespace deeptail {

inline constexpr std::array<const char*, 8> kZoo = {"camel", "caps", "colon", "english",
                                                    "hex",   "icl",  "if",    "spanish"};

inline Distribution zoo(const std::string& name) {
  return load_distribution(fmt::format("{}/distributions/{}.json", DEEPTAIL_SOURCE, name));
}

}  // namespace deeptail
