// A sum of independent effects of an input's tokens, in whole units, and its exact law.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "deeptail/inputs.h"

namespace deeptail::modes {

inline constexpr double kUnitsPerSd = 64.0;  // the sum's mean is 0 and its standard deviation 64, nearly

// A position and its share of the sum's variance.
struct Part {
  std::size_t position;
  double share;
};

class ContextSum {
 public:
  // Effects are normal numbers of the seed, by position and token, then centred and scaled for the position's
  // table.
  ContextSum(const Distribution& dist, std::span<const Part> parts, std::uint64_t seed);

  std::int64_t units(std::span<const TokenId> tokens) const {
    std::int64_t sum = 0;
    for (const Effects& e : effects_) sum += e.of[static_cast<std::size_t>(tokens[e.position])];
    return sum;
  }
  // Of a position's tokens.
  struct Effects {
    std::size_t position;
    std::vector<std::int32_t> of;  // [d_vocab]
  };
  const std::vector<Effects>& effects() const { return effects_; }
  // No sum is further from 0.
  std::int64_t bound() const;
  double tail(std::int64_t least) const;  // Pr[units >= least]
  // The least number that is reached with at most this chance.
  std::int64_t threshold(double chance) const;

 private:
  void convolve(const TokenTable& table, const Effects& effects);

  std::vector<Effects> effects_;
  std::int64_t lowest_ = 0;
  std::vector<double> chance_ = {1.0};  // of lowest_ + i
  std::vector<double> tail_;            // Pr[units >= lowest_ + i], summed from the rare end
};

}  // namespace deeptail::modes
