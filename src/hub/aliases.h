// Models of the hub that have names of their own.
#pragma once

#include <string_view>

namespace deeptail {

inline constexpr struct {
  std::string_view name, repo;
} kHubAliases[] = {  // the paper's, by TransformerLens's names
    {"gelu-1l", "NeelNanda/GELU_1L512W_C4_Code"},
    {"gelu-2l", "NeelNanda/GELU_2L512W_C4_Code"},
    {"gelu-4l", "NeelNanda/GELU_4L512W_C4_Code"}};

}  // namespace deeptail
