// Choosing the next level, and who goes on from it.
#include <algorithm>

#include "core/random.h"
#include "deeptail/splitting.h"

namespace deeptail {

double choose_level(std::span<const double> scores, std::size_t wanted, double current, double threshold) {
  std::vector<double> sorted(scores.begin(), scores.end());
  std::erase_if(sorted, [](double s) { return std::isnan(s); });
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const std::size_t rank = std::clamp<std::size_t>(wanted, 1, sorted.size()) - 1;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(rank), sorted.end(),
                   std::greater<>());
  double level = sorted[rank];
  // A level that all of them reach is none. When a plateau holds the quantile: the next value above it, if
  // any.
  const double passed = std::max(current, *std::min_element(sorted.begin(), sorted.end()));
  if (level < threshold && !(level > passed)) {
    level = std::numeric_limits<double>::infinity();
    for (const double s : sorted)
      if (s > passed) level = std::min(level, s);
    if (std::isinf(level)) return std::numeric_limits<double>::quiet_NaN();
  }
  return std::min(level, threshold);
}

std::vector<std::uint32_t> resample(std::span<const std::uint32_t> survivors, std::size_t n,
                                    Resampling resampling, std::uint64_t seed, std::size_t level) {
  const RngKey key{seed, Stream::kResample};
  const auto m = static_cast<double>(survivors.size());
  std::vector<std::uint32_t> parents(n);
  const double shift = unit_double(uniform64(key, level, 0));
  for (std::size_t i = 0; i < n; ++i) {
    const double u = resampling == Resampling::kSystematic
                         ? (static_cast<double>(i) + shift) / static_cast<double>(n)
                         : unit_double(uniform64(key, level, static_cast<std::uint32_t>(i)));
    parents[i] = survivors[std::min(static_cast<std::size_t>(u * m), survivors.size() - 1)];
  }
  return parents;
}

}  // namespace deeptail
