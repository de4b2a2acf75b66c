// A regular expression as it was read.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "patterns/code_points.h"

namespace deeptail {

struct RegexNode {
  enum class Kind {
    set,       // one character of `set`
    sequence,  // of `parts`, one after another
    choice,    // one of `parts`
    repeat,    // parts[0], `least` to `most` times
    text_start,
    text_end,
    word_edge,     // \b: a word character on one side, none on the other
    no_word_edge,  // \B
  };
  static constexpr std::size_t kNoLimit = ~std::size_t{0};

  Kind kind = Kind::sequence;
  CodePoints set = {};
  std::vector<RegexNode> parts = {};
  std::size_t least = 1, most = 1;
};

// Throws InputError, beginning with `where`, for what is not understood.
RegexNode parse_regex(std::string_view pattern, std::string_view where);

// \w without Unicode's letters.
bool is_word_byte(unsigned char byte);

}  // namespace deeptail
