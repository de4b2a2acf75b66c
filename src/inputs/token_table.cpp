// Probabilities to exact units of 2^-64, and the search table over them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "deeptail/inputs.h"

namespace deeptail {

namespace {

__extension__ typedef unsigned __int128 Wide;

constexpr Wide kWhole = Wide{1} << 64;
constexpr double kSumTolerance = 1e-6;

double to_probability(Wide units) { return std::ldexp(static_cast<double>(units), -64); }

// The nearest whole number of units to each probability. Exact for multiples of 2^-64.
std::vector<Wide> nearest_units(std::span<const TokenId> ids, std::span<const double> probabilities,
                                std::string_view where) {
  std::vector<Wide> units;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const double p = probabilities[i];
    if (!(p >= 0.0 && p <= 1.0))
      throw InputError("{}: token id {} has probability {}: expected 0 to 1", where, ids[i], p);
    units.push_back(static_cast<Wide>(std::nearbyint(std::ldexp(p, 64))));
  }
  return units;
}

// Makes the units sum to 2^64: the difference is shared in proportion, by largest remainders (the earlier of
// equals).
void share_difference(std::vector<Wide>& units, Wide total) {
  const bool add = total < kWhole;
  const Wide difference = add ? kWhole - total : total - kWhole;  // below 2^45, so the products below fit
  if (difference == 0) return;
  std::vector<Wide> remainder(units.size());
  Wide left = difference;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const Wide share = difference * units[i] / total;
    remainder[i] = difference * units[i] % total;
    left -= share;
    units[i] = add ? units[i] + share : units[i] - share;
  }
  std::vector<std::size_t> order(units.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainder[a] > remainder[b]; });
  for (std::size_t i = 0; i < static_cast<std::size_t>(left); ++i)
    units[order[i]] += add ? Wide{1} : ~Wide{0};
}

// Sorts both by id; throws at the first id that occurs twice.
void sort_by_id(std::vector<TokenId>& ids, std::vector<double>& probabilities, std::string_view where) {
  std::vector<std::size_t> order(ids.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return ids[a] < ids[b]; });
  std::vector<TokenId> sorted_ids;
  std::vector<double> sorted;
  for (const std::size_t i : order) {
    if (!sorted_ids.empty() && sorted_ids.back() == ids[i])
      throw InputError("{}: token id {} occurs twice", where, ids[i]);
    sorted_ids.push_back(ids[i]);
    sorted.push_back(probabilities[i]);
  }
  ids = std::move(sorted_ids);
  probabilities = std::move(sorted);
}

}  // namespace

TokenTable::TokenTable(std::string name, std::vector<TokenId> ids, std::vector<double> probabilities,
                       std::string_view where)
    : name_(std::move(name)), ids_(std::move(ids)) {
  if (ids_.empty()) throw InputError("{}: the table is empty: expected at least one token", where);
  if (ids_.size() != probabilities.size())
    throw InputError("{}: {} ids but {} probabilities", where, ids_.size(), probabilities.size());
  sort_by_id(ids_, probabilities, where);
  std::vector<Wide> units = nearest_units(ids_, probabilities, where);
  const Wide total = std::accumulate(units.begin(), units.end(), Wide{0});
  if (!(std::abs(to_probability(total) - 1.0) <= kSumTolerance))
    throw InputError("{}: the probabilities sum to {}: expected 1 within {}", where, to_probability(total),
                     kSumTolerance);
  share_difference(units, total);

  Wide end = 0;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (units[i] == 0)
      throw InputError(
          "{}: token id {} has probability {}, too small to be drawn (below 2^-64): leave it out", where,
          ids_[i], probabilities[i]);
    end += units[i];
    last_unit_.push_back(static_cast<std::uint64_t>(end - 1));
  }

  // With twice as many guide entries as tokens, draw() looks at 1.5 tokens on average.
  int bits = 1;
  while (bits < 16 && (std::size_t{1} << bits) < 2 * ids_.size()) ++bits;
  guide_shift_ = 64 - bits;
  std::uint32_t i = 0;
  for (std::uint64_t b = 0; b < std::uint64_t{1} << bits; ++b) {
    while (last_unit_[i] < b << guide_shift_) ++i;
    guide_.push_back(i);
  }
}

double TokenTable::probability(std::size_t i) const {
  const Wide begin = i == 0 ? 0 : Wide{last_unit_[i - 1]} + 1;
  return to_probability(Wide{last_unit_[i]} + 1 - begin);
}

double TokenTable::log_probability(TokenId token) const {
  const auto found = std::lower_bound(ids_.begin(), ids_.end(), token);
  if (found == ids_.end() || *found != token) return -std::numeric_limits<double>::infinity();
  return std::log(probability(static_cast<std::size_t>(found - ids_.begin())));
}

double TokenTable::entropy() const {
  double sum = 0.0;
  for (std::size_t i = 0; i < size(); ++i) sum -= probability(i) * std::log(probability(i));
  return sum + 0.0;  // no minus zero
}

}  // namespace deeptail
