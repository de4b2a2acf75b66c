#include "patterns/code_points.h"

#include <algorithm>
#include <array>

namespace deeptail {

namespace {

using Range = CodePoints::Range;

// Sorted, and joined where they touch.
std::vector<Range> joined(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  std::vector<Range> out;
  for (const Range& r : ranges) {
    if (!out.empty() && r.first <= out.back().last + 1)
      out.back().last = std::max(out.back().last, r.last);
    else
      out.push_back(r);
  }
  return out;
}

ByteRanges encoded(const Range& r) {
  const auto byte = [](char32_t value) { return static_cast<std::uint8_t>(value); };
  if (r.last < 0x80) return {{byte(r.first), byte(r.last)}};
  const int length = r.last < 0x800 ? 2 : r.last < 0x10000 ? 3 : 4;
  constexpr std::array<char32_t, 5> kLead = {0, 0, 0xC0, 0xE0, 0xF0};
  ByteRanges bytes;
  for (int i = length - 1; i >= 0; --i) {
    const int shift = 6 * i;
    const char32_t mark = i == length - 1 ? kLead[static_cast<std::size_t>(length)] : 0x80;
    const char32_t mask = i == length - 1 ? ~char32_t{0} : 0x3F;
    bytes.push_back({byte(mark | ((r.first >> shift) & mask)), byte(mark | ((r.last >> shift) & mask))});
  }
  return bytes;
}

// Cuts a range until both ends have the same lead bytes, or what follows covers all that can.
void add_encoded(Range r, std::vector<ByteRanges>& out) {
  if (r.first > r.last) return;
  const auto cut = [&](char32_t before) {  // [first, before), [before, last]
    add_encoded({r.first, before - 1}, out);
    add_encoded({before, r.last}, out);
  };
  if (r.first < 0xD800 && r.last >= 0xD800) return cut(0xD800);
  if (r.first < 0xE000 && r.last >= 0xE000) return cut(0xE000);
  if (r.first >= 0xD800 && r.last < 0xE000) return;
  for (const char32_t length_ends : {0x80, 0x800, 0x10000})
    if (r.first < length_ends && r.last >= length_ends) return cut(length_ends);
  if (r.last >= 0x80)
    for (int i = 1; i < 4; ++i) {
      const char32_t low = (char32_t{1} << (6 * i)) - 1;
      if ((r.first & ~low) == (r.last & ~low)) continue;
      if ((r.first & low) != 0) return cut((r.first | low) + 1);
      if ((r.last & low) != low) return cut(r.last & ~low);
    }
  out.push_back(encoded(r));
}

}  // namespace

std::vector<Range> CodePoints::ranges() const { return joined(ranges_); }

CodePoints CodePoints::others() const {
  CodePoints out;
  char32_t next = 0;
  for (const Range& r : joined(ranges_)) {
    if (next < r.first) out.add(next, r.first - 1);
    next = r.last + 1;
  }
  if (next <= kLastCodePoint) out.add(next, kLastCodePoint);
  return out;
}

CodePoints CodePoints::in_both_cases() const {
  CodePoints out = *this;
  for (const Range& r : ranges_)
    for (const auto& [from, to] : {std::pair(U'a', U'A'), std::pair(U'A', U'a')}) {
      const char32_t first = std::max<char32_t>(r.first, from), last = std::min<char32_t>(r.last, from + 25);
      if (first <= last) out.add(first - from + to, last - from + to);
    }
  return out;
}

std::vector<ByteRanges> utf8_ranges(const CodePoints& set) {
  std::vector<ByteRanges> out;
  for (const Range& r : set.ranges()) add_encoded(r, out);
  return out;
}

}  // namespace deeptail
