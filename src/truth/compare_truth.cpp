#include <algorithm>
#include <cmath>
#include <set>

#include "core/statistics.h"
#include "truth/truth.h"

namespace deeptail {

namespace {

// Two counts of one event in independent samples of n_a and n_b.
struct Cell {
  double a = 0.0, b = 0.0;
};

// Both samples' deviation from their common estimate, as a chi-square summand (Pearson, two samples).
double summand(Cell c, double n_a, double n_b) {
  const double pooled = (c.a + c.b) / (n_a + n_b);
  const double e_a = pooled * n_a, e_b = pooled * n_b;
  return (c.a - e_a) * (c.a - e_a) / e_a + (c.b - e_b) * (c.b - e_b) / e_b;
}

double deviations(Cell c, double n_a, double n_b) {
  const double pooled = (c.a + c.b) / (n_a + n_b);
  const double variance = pooled * (1.0 - pooled) * (1.0 / n_a + 1.0 / n_b);
  return variance > 0.0 ? std::abs(c.a / n_a - c.b / n_b) / std::sqrt(variance) : 0.0;
}

// `whole` without `parts`, both sorted; nothing where a part is not all within one range.
std::optional<std::vector<TruthRange>> without(const std::vector<TruthRange>& whole,
                                               const std::vector<TruthRange>& parts) {
  std::vector<TruthRange> rest;
  auto part = parts.begin();
  for (TruthRange range : whole) {
    for (; part != parts.end() && share_inputs(*part, range); ++part) {
      if (part->first < range.first || part->end() > range.end()) return std::nullopt;
      if (part->first > range.first) {
        rest.push_back(range);
        rest.back().count = part->first - range.first;
      }
      range.count = range.end() - part->end();
      range.first = part->end();
    }
    if (range.count > 0) rest.push_back(range);
  }
  if (part != parts.end()) return std::nullopt;
  return rest;
}

// b without the inputs of a, when it holds them all: that rest is independent of a.
std::optional<Truth> rest_of(const Truth& a, const Truth& b) {
  std::vector<TruthRange> parts = a.ranges, whole = b.ranges;
  sort_ranges(parts);
  sort_ranges(whole);
  const auto ranges = without(whole, parts);
  if (!ranges || ranges->empty()) return {};
  Truth rest = b;
  rest.ranges = *ranges;
  // At a near-tie two programs may decide differently, so an input may be missing here.
  for (const auto& [token, count] : a.counts) rest.counts[token] -= std::min(rest.counts[token], count);
  return rest;
}

// b, or what of it is independent of a.
Truth independent_part(const Truth& a, const Truth& b) {
  std::vector<TruthRange> ranges = a.ranges;
  ranges.insert(ranges.end(), b.ranges.begin(), b.ranges.end());
  const auto shared = sort_ranges(ranges);
  if (!shared) return b;
  if (auto rest = rest_of(a, b)) return *std::move(rest);
  throw InputError("the counts share inputs, so they cannot be compared as independent: {} overlaps {}",
                   describe(shared->first), describe(shared->second));
}

}  // namespace

TruthComparison compare_truth(const Truth& a, const Truth& whole_b, double min_expected) {
  check_same_subject(a, "the first count", whole_b, "the second");
  const Truth b = independent_part(a, whole_b);
  std::set<TokenId> tokens;
  for (const Truth* truth : {&a, &b})
    for (const auto& [token, count] : truth->counts) tokens.insert(token);
  const double n_a = static_cast<double>(a.samples()), n_b = static_cast<double>(b.samples());
  TruthComparison result;
  Cell rest;
  std::size_t cells = 0;
  const auto expected = [&](Cell c) { return (c.a + c.b) / (n_a + n_b) * std::min(n_a, n_b); };
  for (const TokenId token : tokens) {
    const Cell cell{static_cast<double>(a.count(token)), static_cast<double>(b.count(token))};
    if (cell.a == 0.0) result.unseen.push_back(token);
    if (expected(cell) < min_expected) {
      rest.a += cell.a, rest.b += cell.b;
      continue;
    }
    ++result.n_tokens, ++cells;
    result.chi_square += summand(cell, n_a, n_b);
    if (const double z = deviations(cell, n_a, n_b); z >= result.max_z)
      result.max_z = z, result.max_z_token = token;
  }
  if (expected(rest) >= 10.0) ++cells, result.chi_square += summand(rest, n_a, n_b);
  std::stable_sort(result.unseen.begin(), result.unseen.end(),
                   [&](TokenId x, TokenId y) { return b.count(x) > b.count(y); });
  if (cells < 2) return result;
  result.degrees = cells - 1;
  result.p_value = chi_squared_tail(result.chi_square, static_cast<double>(result.degrees));
  return result;
}

}  // namespace deeptail
