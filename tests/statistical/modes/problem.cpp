#include "problem.h"

#include <cmath>
#include <numeric>
#include <set>
#include <utility>

namespace deeptail::modes {

Problem::Problem(std::string family, std::string name, Distribution dist, ContextSum context, Lock lock)
    : family_(std::move(family)),
      name_(std::move(name)),
      law_(std::move(dist)),
      context_(std::move(context)),
      lock_(std::move(lock)),
      event_(name_, [this](const EventInputs& asked, std::span<double> out) {
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = score(asked.inputs.sequence(i));
      }) {
  const std::vector<double> mass = masses(0.0);
  truth_ = std::accumulate(mass.begin(), mass.end(), 0.0);
  mode_ = modes();
}

double Problem::score(std::span<const TokenId> tokens) const {
  const Row& row = lock_.rows[lock_.row_of(tokens)];
  return row.slope / kUnitsPerSd * static_cast<double>(context_.units(tokens) - row.threshold);
}

std::vector<double> Problem::masses(double level) const {
  std::vector<double> out;
  for (const Row& row : lock_.rows) {
    const double least = level * kUnitsPerSd / row.slope + static_cast<double>(row.threshold);
    out.push_back(row.prior * context_.tail(static_cast<std::int64_t>(std::ceil(least))));
  }
  return out;
}

std::vector<std::size_t> Problem::modes() const {
  constexpr double kLarge = 0.01;
  const std::vector<double> mass = masses(0.0);
  const std::size_t n = mass.size(), rest = 2 * n;
  std::vector<double> left(n, 0.0);  // of groups, without their large rows
  std::vector<std::size_t> group = lock_.group;
  if (group.empty()) group.assign(n, 0);
  for (std::size_t r = 0; r < n; ++r)
    if (mass[r] < kLarge * truth_) left[group[r]] += mass[r];
  std::vector<std::size_t> mode(n);
  for (std::size_t r = 0; r < n; ++r)
    mode[r] = mass[r] >= kLarge * truth_ ? r : left[group[r]] >= kLarge * truth_ ? n + group[r] : rest;
  return mode;
}

double Problem::recall(std::span<const std::vector<TokenId>> inputs) const {
  std::set<std::size_t> seen;
  for (const auto& tokens : inputs) seen.insert(mode_[lock_.row_of(tokens)]);
  const std::vector<double> mass = masses(0.0);
  double found = 0.0;
  for (std::size_t r = 0; r < mass.size(); ++r)
    if (seen.contains(mode_[r])) found += mass[r];
  return found / truth_;
}

}  // namespace deeptail::modes
