#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "deeptail/loss.h"
#include "loss/mean.h"

namespace deeptail {

namespace {

// Targets of one resample: the numbers depend on (seed, resample, draw) and on nothing else.
class ResampledTargets {
 public:
  ResampledTargets(std::uint64_t seed, std::uint64_t resample, std::uint64_t n)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        resample_(resample),
        n_(n) {}

  // Multiply-shift of 32 random bits; with n targets a share n / 2^32 of the mass is misplaced, far below the
  // noise.
  std::size_t operator()(std::size_t draw) {
    if (draw % 4 == 0)
      block_ = philox({static_cast<std::uint32_t>(draw / 4), static_cast<std::uint32_t>(resample_),
                       static_cast<std::uint32_t>(resample_ >> 32), 0},
                      key_);
    return (block_[draw % 4] * n_) >> 32;
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> block_{};
  std::uint64_t resample_, n_;
};

double quantile(const std::vector<double>& sorted, double level) {
  const double position = level * static_cast<double>(sorted.size() - 1);
  const std::size_t below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

}  // namespace

void BootstrapConfig::validate() const {
  constexpr std::size_t kMost = 100'000'000;
  if (resamples == 0 || resamples > kMost)
    throw InputError("{} resamples: a bootstrap needs at least one and takes at most {}", resamples, kMost);
}

PairedBootstrap paired_bootstrap(std::span<const double> loss_a, std::span<const double> loss_b,
                                 const BootstrapConfig& config, ThreadPool& pool) {
  config.validate();
  const std::size_t n = loss_a.size();
  if (n == 0 || n != loss_b.size() || n > 0xffffffffu)
    throw InputError("a paired bootstrap needs as many losses of A as of B, found {} and {}", n,
                     loss_b.size());
  std::vector<double> difference(n);  // [n]
  for (std::size_t i = 0; i < n; ++i) {
    difference[i] = loss_a[i] - loss_b[i];
    if (!std::isfinite(difference[i]))
      throw InputError(
          "a paired bootstrap needs finite losses: score zero estimates with a positive epsilon");
  }

  std::vector<double> resampled(config.resamples);  // mean difference of each resample
  constexpr std::size_t kBlock = 64;
  pool.for_each_block((config.resamples + kBlock - 1) / kBlock, [&](std::size_t block, std::size_t) {
    const std::size_t end = std::min((block + 1) * kBlock, config.resamples);
    for (std::size_t r = block * kBlock; r < end; ++r) {
      ResampledTargets target(config.seed, r, n);
      resampled[r] = mean_of(n, [&](std::size_t draw) { return difference[target(draw)]; });
    }
  });

  std::sort(resampled.begin(), resampled.end());
  const auto [tie, above] = std::equal_range(resampled.begin(), resampled.end(), 0.0);
  const double wins = static_cast<double>(tie - resampled.begin()) + 0.5 * static_cast<double>(above - tie);
  return {mean_of(n, [&](std::size_t i) { return difference[i]; }),
          {quantile(resampled, 0.025), quantile(resampled, 0.975)},
          wins / static_cast<double>(config.resamples)};
}

}  // namespace deeptail
