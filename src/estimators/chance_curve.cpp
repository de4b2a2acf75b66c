// How rare prompts are that bring a text about with at least a given chance: splitting on the parts of a law.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.h"
#include "core/statistics.h"
#include "deeptail/forecast.h"
#include "deeptail/splitting.h"

namespace deeptail {

namespace {

constexpr double kNoChance = -std::numeric_limits<double>::infinity();
constexpr std::size_t kFewestPrompts = 50, kLevelsBeyond = 4;

// Prompts that move by drawing parts anew, chosen without looking at them.
class PromptParticles {
 public:
  PromptParticles(const InputLaw& law, const LogChances& chances, std::size_t moves, ThreadPool& pool,
                  std::uint64_t& work)
      : law_(law), chances_(chances), free_(law.free_parts()), moves_(moves), pool_(pool), work_(work) {}

  void sample(std::size_t n, std::uint64_t seed) {
    parts_.resize(n * n_parts());
    sample_parts(law_, seed, 0, pool_, parts_);
    law_.make(parts_, inputs_, pool_);
    scores_.resize(n);
    ask(inputs_, scores_);
  }
  std::size_t size() const { return scores_.size(); }
  void scores(std::span<double> out) const { std::copy(scores_.begin(), scores_.end(), out.begin()); }
  void resample(std::span<const std::uint32_t> parents) {
    std::vector<std::uint64_t> parts;
    std::vector<double> scores;
    for (const std::uint32_t p : parents) {
      const auto first = parts_.begin() + static_cast<std::ptrdiff_t>(p * n_parts());
      parts.insert(parts.end(), first, first + static_cast<std::ptrdiff_t>(n_parts()));
      scores.push_back(scores_[p]);
    }
    parts_ = std::move(parts);
    scores_ = std::move(scores);
  }
  MoveStats move(double level, std::size_t number, std::uint64_t seed) {
    MoveStats stats{.moves = moves_};
    const std::size_t n = size(), width = n_parts();
    std::vector<double> scores(n);
    for (std::size_t step = 0; step < moves_; ++step) {
      std::vector<std::uint64_t> proposed = parts_;
      for (std::size_t i = 0; i < n; ++i)
        redraw({seed, Stream::kMoves}, step_index(number, step, i),
               std::span(proposed).subspan(i * width, width));
      law_.make(proposed, inputs_, pool_);
      ask(inputs_, scores);
      for (std::size_t i = 0; i < n; ++i) {
        if (!(scores[i] >= level)) continue;
        scores_[i] = scores[i];
        std::copy_n(proposed.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                    parts_.begin() + static_cast<std::ptrdiff_t>(i * width));
        ++stats.accepted;
      }
      stats.proposed += n;
    }
    return stats;
  }

 private:
  std::size_t n_parts() const { return law_.facts().n_parts; }
  void ask(const Inputs& inputs, std::span<double> out) {
    chances_(inputs, out);
    work_ += out.size();
  }
  // One part, all from one on, or each with a chance of one in four.
  void redraw(RngKey key, std::uint64_t index, std::span<std::uint64_t> parts) const {
    const std::size_t n = free_.size();
    const double kind = unit_double(uniform64(key, index, 0)), where = unit_double(uniform64(key, index, 1));
    const std::size_t at = std::min(n - 1, static_cast<std::size_t>(where * static_cast<double>(n)));
    for (std::size_t k = 0; k < n; ++k) {
      const auto slot = static_cast<std::uint32_t>(2 * k + 2);
      const bool anew = kind < 0.5    ? k == at
                        : kind < 0.75 ? k >= at
                                      : unit_double(uniform64(key, index, slot + 1)) < 0.25;
      if (anew) parts[free_[k]] = uniform64(key, index, slot);
    }
  }

  const InputLaw& law_;
  const LogChances& chances_;
  std::vector<std::size_t> free_;
  std::size_t moves_;
  ThreadPool& pool_;
  std::uint64_t& work_;
  std::vector<std::uint64_t> parts_;  // [n, n_parts]
  std::vector<double> scores_;        // [n]
  Inputs inputs_;                     // scratch
};

// The first levels of a run as a run of its own.
SplittingRun cut_to(const SplittingRun& run, std::size_t n_levels) {
  SplittingRun out{.first = run.first};
  for (std::size_t k = 0; k < n_levels; ++k) {
    const double f = k < run.levels.size() ? run.levels[k].survive_fraction : 0.0;
    out.log_p += std::log(f);
    if (f > 0.0) out.genealogy_variance += (1.0 - f) / (f * static_cast<double>(run.levels[k].particles));
  }
  out.log_reach = out.log_p;
  out.end = std::isinf(out.log_p) ? SplittingEnd::kExtinct : SplittingEnd::kReached;
  return out;
}

struct CurveSizes {
  std::size_t particles, first_draw;
  std::uint64_t chances;  // in all, about
};
// Shares down to e^-this: beyond the largest of so many prompts, with 97.5 % chance, there is a larger one.
double least_log_share(double most_queries) { return std::log(most_queries) - std::log(-std::log1p(-0.025)); }

CurveSizes curve_sizes(const WorstConfig& config, double most_queries) {
  const double to_share = std::max(1.0, least_log_share(most_queries) / -std::log(config.survive_fraction)),
               levels = to_share + static_cast<double>(kLevelsBeyond),
               runs = static_cast<double>(config.replicas) + 1.0,
               of_particle = levels * static_cast<double>(config.moves) + 4.0;
  const auto n = std::max(kFewestPrompts, static_cast<std::size_t>(config.budget / (runs * of_particle)));
  return {n, 4 * n, static_cast<std::uint64_t>(runs * of_particle * static_cast<double>(n))};
}

// A pilot of few prompts takes heights for rarer than they are, so the curve goes on beyond its last level, in steps like the
// last ones. A chance is below 1.
void add_levels_beyond(std::vector<double>& levels) {
  constexpr std::size_t kLast = 3;
  if (levels.size() <= kLast) return;
  const double step = (levels.back() - levels[levels.size() - 1 - kLast]) / static_cast<double>(kLast);
  for (std::size_t k = 0; k < kLevelsBeyond && step > 0.0 && levels.back() + step < 0.0; ++k)
    levels.push_back(levels.back() + step);
}

}  // namespace

void WorstConfig::validate() const {
  if (!(budget >= 1.0 && budget <= 1e15)) throw InputError("budget {:g}: expected 1 to 1e15", budget);
  if (replicas < 2 || replicas > kMostReplicas)
    throw InputError("replicas {}: expected 2 to {}", replicas, kMostReplicas);
  if (moves < 1 || moves > kMostMoves) throw InputError("moves {}: expected 1 to {}", moves, kMostMoves);
  if (!(survive_fraction > 0.0 && survive_fraction < 1.0))
    throw InputError("survive fraction {}: expected a number between 0 and 1", survive_fraction);
}

ChanceCurve chance_curve(const InputLaw& law, const LogChances& chances, double most_queries,
                         const WorstConfig& config, ThreadPool& pool, const Watch& watch) {
  config.validate();
  check_varies(law);
  const CurveSizes sizes = curve_sizes(config, most_queries);
  ChanceCurve curve;
  bool stopped = false;
  // Told after every level; the pilot ends where the shares are small enough.
  const auto tell = [&](const Level&, PromptParticles&, std::span<const double>) {
    stopped = !goes_on(watch, progress_of(std::min(curve.chances, sizes.chances), sizes.chances));
    return !stopped;
  };
  PromptParticles particles(law, chances, config.moves, pool, curve.chances);
  SplittingConfig splitting{.n_particles = sizes.particles,
                            .initial_particles = sizes.first_draw,
                            .survive_fraction = config.survive_fraction,
                            .threshold = 0.0,
                            .resampling = Resampling::kMultinomial};
  double log_share = 0.0;
  auto enough = [&](const Level& level, PromptParticles&, std::span<const double>) {
    log_share += std::log(level.survive_fraction);
    return log_share > -least_log_share(most_queries) - 0.5;
  };
  auto tell_pilot = tell;
  const SplittingRun pilot =
      run_splitting(particles, splitting, derived_seed(config.seed, 0), enough, tell_pilot);
  for (const Level& level : pilot.levels)
    if (level.survivors > 0) curve.levels.push_back(level.level);
  curve.ended = log_share > -std::log(most_queries);
  if (curve.levels.empty()) return curve;
  if (!curve.ended) add_levels_beyond(curve.levels);

  splitting.levels = curve.levels;
  splitting.threshold = curve.levels.back();
  std::vector<SplittingRun> runs;
  for (std::size_t r = 0; r < config.replicas && !stopped; ++r) {
    auto tell_replica = tell;
    runs.push_back(run_splitting(particles, splitting, derived_seed(config.seed, r + 1), tell_replica));
    if (stopped && runs.size() > 2) runs.pop_back();  // it has not come to its end
  }
  curve.of_replicas.resize(runs.size());
  for (std::size_t k = 0; k < curve.levels.size(); ++k) {
    std::vector<SplittingRun> cut;
    for (const SplittingRun& run : runs) cut.push_back(cut_to(run, k + 1));
    const ReplicaSummary summary = combine_replicas(cut, config.confidence);
    if (std::isinf(summary.log_p) && k > 0) {  // nobody came here
      curve.levels.resize(k);
      break;
    }
    for (std::size_t r = 0; r < runs.size(); ++r) curve.of_replicas[r].push_back(cut[r].log_p);
    curve.log_share.push_back(summary.log_p);
    curve.log_low.push_back(summary.log_low);
    curve.log_high.push_back(summary.log_high);
  }
  return curve;
}

namespace {

// The largest level whose log share is at least `wanted`; shares fall along the levels. beyond: where the last one's is, too.
double level_at(std::span<const double> levels, std::span<const double> log_share, double wanted,
                double beyond) {
  double level = kNoChance, share = 0.0;
  for (std::size_t k = 0; k < levels.size(); ++k) {
    const double next = std::min(share, log_share[k]);
    if (next < wanted) {
      if (std::isinf(level) || std::isinf(next)) return level;
      return level + (levels[k] - level) * (share - wanted) / (share - next);
    }
    level = levels[k];
    share = next;
  }
  return levels.empty() ? level : beyond;
}

struct CurvePoint {
  double level, low, high;
};
// Where the curve crosses a share. Most replicas find too few of the prompts that are rarest, and some many: so the upper end is
// at least where the highest of them crosses. beyond: the upper end where the curve does not come so far.
CurvePoint point_of(const ChanceCurve& curve, double wanted, double beyond, double confidence) {
  const double last = curve.levels.back(), level = level_at(curve.levels, curve.log_share, wanted, last);
  if (std::isinf(level)) return {kNoChance, kNoChance, curve.levels.front()};
  double n = 0.0, sum = 0.0, squares = 0.0, highest = level_at(curve.levels, curve.log_share, wanted, beyond);
  for (const std::vector<double>& shares : curve.of_replicas) {
    const double own = level_at(curve.levels, shares, wanted, last);
    if (std::isinf(own)) continue;
    n += 1.0, sum += own, squares += own * own;
    highest = std::max(highest, own);
  }
  if (n < 2.0) return {level, kNoChance, 0.0};
  const double variance = std::max(0.0, squares / n - sum * sum / n / n) / (n - 1.0);  // of the mean
  const double half = student_t_quantile(0.5 + 0.5 * confidence, n - 1.0) * std::sqrt(variance);
  return {level, level - half, std::min(0.0, std::max(level + half, highest))};
}

}  // namespace

std::vector<WorstOf> worst_by_curve(const ChanceCurve& curve, std::span<const double> queries,
                                    double confidence) {
  const double tail = 0.5 - 0.5 * confidence;
  const double most = std::log(-std::log(tail)), least = std::log(-std::log1p(-tail));  // of log E
  std::vector<WorstOf> out;
  for (const double n : queries) {
    WorstOf& w = out.emplace_back(WorstOf{.queries = n, .log_p = kNoChance, .log_low = kNoChance});
    if (curve.levels.empty()) continue;
    const double wanted = -std::log(n), beyond = curve.ended ? curve.levels.back() : 0.0;
    const auto at = [&](double log_share) { return point_of(curve, log_share, beyond, confidence); };
    const CurvePoint one = at(wanted), frequent = at(wanted + most), rare = at(wanted + least);
    w.log_p = one.level;
    // By the replicas' heights, and by how rare they say that these are, whichever is wider; the latter says nothing where shares
    // are so small that they spread over orders of magnitude.
    w.log_low = std::min(one.low, level_at(curve.levels, curve.log_low, wanted, one.low));
    w.log_high =
        std::max(one.high, std::min(rare.level, level_at(curve.levels, curve.log_high, wanted, 0.0)));
    // Both errors as squares; below the first level nothing is known.
    w.log_worst_low =
        std::isinf(frequent.low)
            ? kNoChance
            : one.level - std::hypot(one.level - frequent.level,
                                     std::max(frequent.level - frequent.low, one.level - w.log_low));
    w.log_worst_high = std::isinf(one.level)
                           ? rare.high
                           : one.level + std::hypot(rare.level - one.level,
                                                    std::max(rare.high - rare.level, w.log_high - one.level));
    w.log_worst_low = std::min(w.log_worst_low, w.log_low);
    w.log_worst_high = std::min(0.0, std::max(w.log_worst_high, w.log_high));
  }
  return out;
}

}  // namespace deeptail
