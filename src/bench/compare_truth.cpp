#include <algorithm>
#include <cmath>
#include <set>

#include "bench/truth.h"
#include "core/statistics.h"

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

// Takes `part` out of the range that holds all of it; false where there is none.
bool take_out(const TruthRange& part, std::vector<TruthRange>& ranges) {
  for (TruthRange& range : ranges) {
    const bool holds = drawn_by(range) == drawn_by(part) && range.seed == part.seed &&
                       range.first <= part.first && part.end() <= range.end();
    if (!holds) continue;
    TruthRange after = range;
    after.first = part.end(), after.count = range.end() - part.end();
    range.count = part.first - range.first;
    ranges.push_back(after);
    std::erase_if(ranges, [](const TruthRange& r) { return r.count == 0; });
    return true;
  }
  return false;
}

// b without the inputs of a, when it holds them all: that rest is independent of a.
std::optional<Truth> rest_of(const Truth& a, const Truth& b) {
  Truth rest = b;
  for (const TruthRange& part : a.ranges)
    if (!take_out(part, rest.ranges)) return {};
  if (rest.ranges.empty()) return {};
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
