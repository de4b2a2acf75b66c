// Sets of Unicode code points, and how UTF-8 writes them.
#pragma once

#include <cstdint>
#include <vector>

namespace deeptail {

inline constexpr char32_t kLastCodePoint = 0x10FFFF;

class CodePoints {
 public:
  struct Range {
    char32_t first, last;
  };

  void add(char32_t first, char32_t last) { ranges_.push_back({first, last}); }
  void add(const CodePoints& other) {
    ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  }
  CodePoints others() const;          // all that are not in it
  CodePoints in_both_cases() const;   // with the other case of each ASCII letter
  std::vector<Range> ranges() const;  // ascending, with gaps between them

 private:
  std::vector<Range> ranges_;  // in any order
};

// One to four ranges of bytes, one after another.
struct ByteRange {
  std::uint8_t low, high;
};
using ByteRanges = std::vector<ByteRange>;
// What UTF-8 writes the set with: every way to choose a byte of each range is one of its characters. Surrogates
// have none.
std::vector<ByteRanges> utf8_ranges(const CodePoints& set);

}  // namespace deeptail
