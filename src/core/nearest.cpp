#include "core/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace deeptail {

namespace {

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace

std::size_t edits_between(std::string_view a, std::string_view b) {
  // Row i: the distances of a's first i characters to b's first 0, 1, ...
  std::vector<std::size_t> two_before(b.size() + 1), before(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(two_before, before);
    std::swap(before, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string nearest_name(std::string_view word, std::span<const std::string> names) {
  constexpr std::size_t kLongest = 100;
  if (word.empty() || word.size() > kLongest) return "";
  std::string best;
  std::size_t fewest = std::max<std::size_t>(1, (word.size() - 1) / 3) + 1;
  for (const std::string& name : names) {
    if (name.empty() || name.size() > kLongest) continue;
    const std::size_t edits = edits_between(lower_case(word), lower_case(name));
    if (edits >= fewest || edits >= name.size()) continue;
    fewest = edits;
    best = name;
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> names) {
  const std::string name = nearest_name(word, names);
  return name.empty() ? "" : fmt::format("; did you mean \"{}\"?", name);
}

}  // namespace deeptail
