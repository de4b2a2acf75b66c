// Variance of one run from who descends from whom.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "deeptail/splitting.h"

namespace deeptail {

namespace {

std::unordered_map<std::uint32_t, double> tally(std::span<const std::uint32_t> who,
                                                std::span<const std::uint32_t> of) {
  std::unordered_map<std::uint32_t, double> counts;
  for (const std::uint32_t i : who) counts[of[i]] += 1.0;
  return counts;
}

// Correlation of the survival of two particles with one parent, and the factor by which it raises the
// variance of the mean: (pairs of siblings per particle) * correlation.
struct Siblings {
  double correlation = 0.0, inflation = 0.0;
};

Siblings siblings(std::span<const std::uint32_t> survivors, std::span<const std::uint32_t> parent, double p) {
  std::vector<std::uint32_t> everyone(parent.size());
  std::iota(everyone.begin(), everyone.end(), 0u);
  const auto family = tally(everyone, parent), alive = tally(survivors, parent);
  double pairs = 0.0, covariance = 0.0;
  for (const auto& [who, size] : family) {
    const auto found = alive.find(who);
    const double s = found == alive.end() ? 0.0 : found->second;
    // Sum over ordered pairs i != j of (x_i - p)(x_j - p) = (sum)^2 - sum of squares.
    const double sum = s - size * p, squares = s * (1 - p) * (1 - p) + (size - s) * p * p;
    pairs += size * (size - 1);
    covariance += sum * sum - squares;
  }
  if (pairs == 0.0 || p <= 0.0 || p >= 1.0) return {};
  const double correlation = covariance / pairs / (p * (1 - p));
  return {correlation, std::max(0.0, correlation) * pairs / static_cast<double>(parent.size())};
}

}  // namespace

Genealogy::Genealogy(std::size_t n) : ancestor_(n) { std::iota(ancestor_.begin(), ancestor_.end(), 0u); }

void Genealogy::survive(std::span<const std::uint32_t> survivors, Level& level) {
  const auto n = static_cast<double>(ancestor_.size()), m = static_cast<double>(survivors.size());
  const double p = m / n;
  level.particles = ancestor_.size();
  level.survivors = survivors.size();
  level.survive_fraction = p;
  const auto ancestors = tally(survivors, ancestor_);
  level.ancestors = ancestors.size();
  Siblings related;
  if (has_parents_) related = siblings(survivors, parent_, p);
  level.sibling_correlation = related.correlation;
  if (survivors.empty()) return;
  log_factor_ += std::log(n / (n - 1.0));
  same_ancestor_ = 0.0;
  for (const auto& [who, count] : ancestors) same_ancestor_ += (count / m) * (count / m);
  independent_variance_ += (1 - p) / (p * n);
  level_variance_ += (1 - p) / (p * n) * (1 + related.inflation);
}

void Genealogy::resample(std::span<const std::uint32_t> parents) {
  std::vector<std::uint32_t> next(parents.size());
  for (std::size_t i = 0; i < parents.size(); ++i) next[i] = ancestor_[parents[i]];
  ancestor_ = std::move(next);
  parent_.assign(parents.begin(), parents.end());
  has_parents_ = true;
}

double Genealogy::weigh(std::span<const std::uint32_t> survivors, std::span<const double> log_payoffs) {
  const double top = *std::max_element(log_payoffs.begin(), log_payoffs.end());
  if (std::isinf(top)) return 0.0;
  std::unordered_map<std::uint32_t, double> by_ancestor;
  double sum = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < survivors.size(); ++i) {
    const double payoff = std::exp(log_payoffs[i] - top);
    by_ancestor[ancestor_[survivors[i]]] += payoff;
    sum += payoff;
    squares += payoff * payoff;
  }
  same_ancestor_ = 0.0;
  for (const auto& [who, payoff] : by_ancestor) same_ancestor_ += (payoff / sum) * (payoff / sum);
  const auto m = static_cast<double>(survivors.size());
  const double share = sum * sum / (m * squares);
  const double spread = (1.0 / share - 1.0) / m;  // relative variance of the mean payoff of m of them
  independent_variance_ += spread;
  level_variance_ += spread;
  return share;
}

double Genealogy::variance() const {
  return std::max(0.0, 1.0 - std::exp(log_factor_) * (1.0 - same_ancestor_));
}

}  // namespace deeptail
