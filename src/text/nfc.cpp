#include "text/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "text/unicode.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxDecomposition = 8;  // code points of one; the longest canonical one has 4

utf8proc_propval_t combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

std::vector<utf8proc_int32_t> decompose(std::string_view text) {
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  for (std::size_t pos = 0; pos < text.size();) {
    const auto [c, length] = code_point_at(text, pos);
    utf8proc_int32_t parts[kMaxDecomposition];
    int boundary = 0;
    const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, kMaxDecomposition,
                                           UTF8PROC_DECOMPOSE, &boundary);
    if (n < 0 || n > static_cast<utf8proc_ssize_t>(kMaxDecomposition))
      throw std::logic_error("utf8proc could not decompose a code point");
    points.insert(points.end(), parts, parts + n);
    pos += length;
  }
  return points;
}

// Canonical ordering. utf8proc has one too, but quadratic in the length of a run of marks.
void order_marks(std::vector<utf8proc_int32_t>& points) {
  const auto is_mark = [](utf8proc_int32_t c) { return combining_class(c) != 0; };
  const auto by_class = [](utf8proc_int32_t a, utf8proc_int32_t b) {
    return combining_class(a) < combining_class(b);
  };
  for (auto it = points.begin(); it != points.end();) {
    const auto first = std::find_if(it, points.end(), is_mark);
    const auto last = std::find_if_not(first, points.end(), is_mark);
    if (!std::is_sorted(first, last, by_class)) std::stable_sort(first, last, by_class);
    it = last;
  }
}

}  // namespace

std::string to_nfc(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return std::string(text);
  auto points = decompose(text);
  order_marks(points);
  const auto n = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                                          static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (n < 0) throw std::logic_error("utf8proc could not compose");
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < n; ++i)
    append_utf8(static_cast<char32_t>(points[static_cast<std::size_t>(i)]), out);
  return out;
}

}  // namespace deeptail
