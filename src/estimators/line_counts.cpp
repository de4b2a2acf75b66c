#include "estimators/line_counts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace deeptail {

namespace {

constexpr std::size_t kRows = 96;         // of one block of work
constexpr std::size_t kStripPanels = 32;  // 512 columns stay in cache
constexpr float kUnbounded = std::numeric_limits<float>::infinity();
constexpr float kSteep = 1e30f;  // 1 / 0 slope: a constraint that no step along the line changes

// For target t and every other token k: t wins once step * (slope_t - slope_k) >= z_k - z_t. Written as
// low = max(gap * rise + rise_off), high = min(gap * fall + fall_off), so that columns need no branch.
struct Slopes {
  AlignedVector<float> rise, rise_off, fall, fall_off;  // [d_vocab rounded up]
};

Slopes slopes_of(const LineProblem& p, TokenId t) {
  const std::size_t n = round_up(p.w_u.n(), kPanel);
  Slopes s{AlignedVector<float>(n, 0.0f), AlignedVector<float>(n, -kUnbounded), AlignedVector<float>(n, 0.0f),
           AlignedVector<float>(n, kUnbounded)};
  for (std::size_t k = 0; k < p.w_u.n(); ++k) {
    if (p.target.contains(static_cast<TokenId>(k))) continue;
    const double difference = p.slope[static_cast<std::size_t>(t)] - p.slope[k];
    const auto inverse = static_cast<float>(1.0 / difference);
    if (difference >= 0.0)
      s.rise[k] = std::min(inverse, kSteep), s.rise_off[k] = 0.0f;
    else
      s.fall[k] = std::max(inverse, -kSteep), s.fall_off[k] = 0.0f;
  }
  return s;
}

struct Bounds {
  std::array<float, kPanel> low, high;
  Bounds() {
    low.fill(-kUnbounded);
    high.fill(kUnbounded);
  }
  void challenge(std::size_t first, std::size_t columns, const float* z, float z_target, const Slopes& s) {
    for (std::size_t k = 0; k < columns; k += kPanel)
      for (std::size_t lane = 0; lane < kPanel; ++lane) {
        const std::size_t id = first + k + lane;
        const float gap = z[k + lane] - z_target;
        const float l = gap * s.rise[id] + s.rise_off[id], h = gap * s.fall[id] + s.fall_off[id];
        low[lane] = l > low[lane] ? l : low[lane];
        high[lane] = h < high[lane] ? h : high[lane];
      }
  }
};

struct Range {
  double low, high;
};
// Overlapping ones become one; ascending.
void merge(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.low < b.low; });
  std::size_t kept = 0;
  for (const Range& r : ranges)
    if (kept > 0 && r.low <= ranges[kept - 1].high)
      ranges[kept - 1].high = std::max(ranges[kept - 1].high, r.high);
    else
      ranges[kept++] = r;
  ranges.resize(kept);
}

class IntervalFinder {
 public:
  explicit IntervalFinder(const LineProblem& p) : p_(p), target_(p.w_u.columns(p.target.ids())) {
    for (const TokenId t : p.target.ids()) slopes_.push_back(slopes_of(p, t));
  }

  void run(std::size_t first, std::size_t n, std::vector<AcceptedInterval>& out) const {
    const std::size_t n_targets = slopes_.size(), width = kStripPanels * kPanel;
    AlignedVector<float> z_target(n * round_up(n_targets, kPanel)), strip(n * width);
    const Rows target_rows{z_target.data(), round_up(n_targets, kPanel)}, rows{strip.data(), width};
    gemm(n, p_.normed.from(first), target_, target_rows);
    std::vector<Bounds> bounds(n * n_targets);
    for (std::size_t panel = 0; panel < p_.w_u.n_panels(); panel += kStripPanels) {
      const std::size_t count = std::min(kStripPanels, p_.w_u.n_panels() - panel);
      gemm_panels(n, p_.normed.from(first), p_.w_u, panel, count, rows);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t t = 0; t < n_targets; ++t)
          bounds[i * n_targets + t].challenge(panel * kPanel, count * kPanel, rows.row(i),
                                              target_rows.row(i)[t], slopes_[t]);
    }
    std::vector<Range> ranges;
    for (std::size_t i = 0; i < n; ++i) {
      ranges.clear();
      for (std::size_t t = 0; t < n_targets; ++t) {
        const Bounds& b = bounds[i * n_targets + t];
        const double low = *std::max_element(b.low.begin(), b.low.end());
        const double high = *std::min_element(b.high.begin(), b.high.end());
        if (low <= high) ranges.push_back({low, high});
      }
      merge(ranges);
      for (const Range& r : ranges) out.push_back({static_cast<std::uint32_t>(first + i), r.low, r.high});
    }
  }

 private:
  const LineProblem& p_;
  PackedMatrix target_;  // [d, target ids]
  std::vector<Slopes> slopes_;
};

}  // namespace

std::vector<AcceptedInterval> accepted_intervals(const LineProblem& problem, ThreadPool& pool) {
  const IntervalFinder finder(problem);
  const std::size_t n_blocks = (problem.n + kRows - 1) / kRows;
  std::vector<std::vector<AcceptedInterval>> found(n_blocks);
  pool.for_each_block(n_blocks, [&](std::size_t block, std::size_t) {
    const std::size_t first = block * kRows;
    finder.run(first, std::min(kRows, problem.n - first), found[block]);
  });
  std::vector<AcceptedInterval> out;
  for (const auto& part : found) out.insert(out.end(), part.begin(), part.end());
  return out;
}

std::vector<std::vector<std::uint64_t>> count_pairs(std::span<const double> a, std::span<const double> origin,
                                                    std::span<const AcceptedInterval> intervals,
                                                    std::size_t n_blocks, ThreadPool& pool) {
  const std::size_t n = a.size();
  const auto bound = [&](std::size_t block) { return n * block / n_blocks; };
  std::vector<std::vector<double>> sorted(n_blocks);
  std::vector<std::vector<std::uint64_t>> counts(n_blocks, std::vector<std::uint64_t>(n_blocks, 0));
  pool.for_each_block(n_blocks, [&](std::size_t g, std::size_t) {
    sorted[g].assign(a.begin() + static_cast<std::ptrdiff_t>(bound(g)),
                     a.begin() + static_cast<std::ptrdiff_t>(bound(g + 1)));
    std::sort(sorted[g].begin(), sorted[g].end());
  });
  pool.for_each_block(n_blocks, [&](std::size_t h, std::size_t) {
    const auto at = [&](std::size_t row) {
      return std::lower_bound(intervals.begin(), intervals.end(), row,
                              [](const AcceptedInterval& i, std::size_t r) { return i.row < r; });
    };
    for (auto it = at(bound(h)), end = at(bound(h + 1)); it != end; ++it)
      for (std::size_t g = 0; g < n_blocks; ++g) {
        const auto low = std::lower_bound(sorted[g].begin(), sorted[g].end(), origin[it->row] + it->low);
        const auto high = std::upper_bound(low, sorted[g].end(), origin[it->row] + it->high);
        counts[g][h] += static_cast<std::uint64_t>(high - low);
      }
  });
  return counts;
}

}  // namespace deeptail
