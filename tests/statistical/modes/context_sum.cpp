#include "context_sum.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "core/statistics.h"

namespace deeptail::modes {

namespace {

std::vector<double> normals(const TokenTable& table, std::uint64_t seed, std::size_t position) {
  std::vector<double> out;
  for (const TokenId id : table.ids()) {
    const std::uint64_t u =
        uniform64({seed, Stream::kPriorNormals}, position, static_cast<std::uint32_t>(id));
    out.push_back(normal_quantile(std::clamp(unit_double(u), 1e-4, 1.0 - 1e-4)));
  }
  return out;
}

std::vector<double> standardised(std::vector<double> values, const TokenTable& table) {
  double mean = 0.0, square = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) mean += table.probability(i) * values[i];
  for (std::size_t i = 0; i < values.size(); ++i)
    square += table.probability(i) * (values[i] - mean) * (values[i] - mean);
  for (double& x : values) x = (x - mean) / std::sqrt(square);
  return values;
}

}  // namespace

ContextSum::ContextSum(const Distribution& dist, std::span<const Part> parts, std::uint64_t seed) {
  for (const Part& part : parts) {
    const TokenTable& table = dist.table(part.position);
    const auto values = standardised(normals(table, seed, part.position), table);
    Effects effects{part.position, std::vector<std::int32_t>(dist.d_vocab, 0)};
    for (std::size_t i = 0; i < values.size(); ++i)
      effects.of[static_cast<std::size_t>(table.ids()[i])] =
          static_cast<std::int32_t>(std::lround(values[i] * std::sqrt(part.share) * kUnitsPerSd));
    convolve(table, effects);
    effects_.push_back(std::move(effects));
  }
  tail_.resize(chance_.size());
  double sum = 0.0;
  for (std::size_t i = chance_.size(); i-- > 0;) tail_[i] = sum += chance_[i];
}

void ContextSum::convolve(const TokenTable& table, const Effects& effects) {
  std::int32_t low = 0, high = 0;
  for (const TokenId id : table.ids()) {
    low = std::min(low, effects.of[static_cast<std::size_t>(id)]);
    high = std::max(high, effects.of[static_cast<std::size_t>(id)]);
  }
  std::vector<double> step(static_cast<std::size_t>(high - low) + 1, 0.0);
  for (std::size_t i = 0; i < table.size(); ++i)
    step[static_cast<std::size_t>(effects.of[static_cast<std::size_t>(table.ids()[i])] - low)] +=
        table.probability(i);
  std::vector<double> next(chance_.size() + step.size() - 1, 0.0);
  for (std::size_t k = 0; k < step.size(); ++k)
    for (std::size_t i = 0; step[k] > 0.0 && i < chance_.size(); ++i) next[i + k] += chance_[i] * step[k];
  chance_ = std::move(next);
  lowest_ += low;
}

std::int64_t ContextSum::bound() const {
  return std::max(-lowest_, lowest_ + static_cast<std::int64_t>(chance_.size()) - 1);
}

double ContextSum::tail(std::int64_t least) const {
  const std::int64_t i = std::max<std::int64_t>(0, least - lowest_);
  return i < static_cast<std::int64_t>(tail_.size()) ? tail_[static_cast<std::size_t>(i)] : 0.0;
}

std::int64_t ContextSum::threshold(double chance) const {
  const auto at = std::partition_point(tail_.begin(), tail_.end(), [&](double t) { return t > chance; });
  return lowest_ + (at - tail_.begin());
}

}  // namespace deeptail::modes
