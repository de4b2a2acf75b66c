#include "splitting/start.h"

#include <algorithm>

#include "core/random.h"

namespace deeptail {

StartPoints draw_start(const ProductPrior& prior, std::span<const double> cumulative, const StartCloud& cloud,
                       std::size_t n, std::uint64_t seed, ThreadPool& pool) {
  constexpr std::size_t kBlock = 64;
  const std::size_t dim = prior.dim();
  StartPoints out;
  out.u.resize(n * dim);
  out.groups.resize(cumulative.empty() ? 0 : n);
  pool.for_each_block((n + kBlock - 1) / kBlock, [&](std::size_t block, std::size_t) {
    const std::size_t first = block * kBlock, count = std::min(kBlock, n - first);
    if (cloud.n == 0) prior.sample(seed, first, count, {out.u.data() + first * dim, dim});
    for (std::size_t i = first; i < first + count; ++i) {
      const auto word = uniform64_pair({seed, Stream::kPriorStart}, i, 0);
      if (cloud.n > 0) {
        const auto from = static_cast<std::size_t>(unit_double(word[0]) * static_cast<double>(cloud.n));
        cloud.row(from, out.u.data() + i * dim);
        if (!out.groups.empty()) out.groups[i] = cloud.groups[from];
      } else if (!out.groups.empty()) {
        out.groups[i] = static_cast<std::uint32_t>(
            std::upper_bound(cumulative.begin(), cumulative.end() - 1, unit_double(word[1])) -
            cumulative.begin());
      }
    }
  });
  return out;
}

}  // namespace deeptail
