#include "deeptail/qld.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "core/statistics.h"
#include "core/stopwatch.h"
#include "estimators/cloud.h"
#include "estimators/line_counts.h"
#include "estimators/method_list.h"

namespace deeptail {

namespace {

using Counts = std::vector<std::vector<std::uint64_t>>;

struct Direction {
  bool exists = false;
  std::vector<double> unit;  // [d], whitened
  ShortestVector shortest;
};

// Of the shortest vectors that make one target token win, the shortest.
Direction shortest_accepting(const Head& head, const Whitening& w, const Target& target, ThreadPool& pool) {
  Direction out;
  for (const TokenId t : target.ids()) {
    ShortestVector found = shortest_vector(winning_region(head, w, t, target, pool), pool);
    if (!found.feasible || (out.exists && found.length() >= out.shortest.length())) continue;
    out.exists = true;
    out.shortest = std::move(found);
  }
  if (!out.exists) return out;
  const double length = out.shortest.length();
  out.unit = out.shortest.x;
  for (double& u : out.unit) u /= length;
  return out;
}

// Where the mean itself gives the target no vector is shortest; the way to the nearest face serves as well.
std::vector<double> nearest_face(const Head& head, const Whitening& w, const Target& target,
                                 ThreadPool& pool) {
  const HalfSpaces region = winning_region(head, w, target.ids().front(), target, pool);
  double nearest = std::numeric_limits<double>::infinity();
  std::vector<double> unit(w.d, 0.0);
  unit[0] = 1.0;
  for (std::size_t i = 0; i < region.n; ++i) {
    double norm = 0.0;
    for (std::size_t j = 0; j < w.d; ++j) norm += region.normal(i)[j] * region.normal(i)[j];
    norm = std::sqrt(norm);
    if (norm == 0.0 || !(std::abs(region.offsets[i]) / norm < nearest)) continue;
    nearest = std::abs(region.offsets[i]) / norm;
    for (std::size_t j = 0; j < w.d; ++j) unit[j] = region.normal(i)[j] / norm;
  }
  return unit;
}

double total(const Counts& counts) {
  double sum = 0.0;
  for (const auto& row : counts)
    for (const std::uint64_t count : row) sum += static_cast<double>(count);
  return sum;
}

// Leaves out one block of activations at a time, from both sides; standard error of log p, or infinity when a
// single block holds all that was counted.
double jackknife_error(const Counts& counts, std::size_t n) {
  const std::size_t g = counts.size();
  std::vector<double> logs;
  for (std::size_t left_out = 0; left_out < g; ++left_out) {
    double sum = 0.0;
    for (std::size_t i = 0; i < g; ++i)
      for (std::size_t j = 0; j < g; ++j)
        if (i != left_out && j != left_out) sum += static_cast<double>(counts[i][j]);
    const auto rest = static_cast<double>(n - (n * (left_out + 1) / g - n * left_out / g));
    logs.push_back(std::log(sum) - 2.0 * std::log(rest));
  }
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(g);
  double squares = 0.0;
  for (const double value : logs) squares += (value - mean) * (value - mean);
  const double error = std::sqrt(squares * static_cast<double>(g - 1) / static_cast<double>(g));
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

void fill_probability(Estimate& e, const Counts& counts, std::size_t n) {
  const double pairs = total(counts), rows = static_cast<double>(n);
  e.log_p = std::log(pairs) - 2.0 * std::log(rows);
  if (pairs == 0.0) {
    // n recombinations can be chosen so that none shares a part with another: independent under the method's
    // model.
    e.status = Status::kNotReachedUpperBound;
    e.log_low = -std::numeric_limits<double>::infinity();
    e.log_high = std::log(clopper_pearson(0, n, e.confidence).high);
    return;
  }
  const double error = jackknife_error(counts, n);
  const double t = student_t_quantile(0.5 * (1.0 + e.confidence), static_cast<double>(counts.size() - 1));
  const double half = std::isfinite(error) ? t * error : error;
  e.log_low = e.log_p - half;
  if (pairs == rows * rows) e.log_low = std::log(clopper_pearson(n, n, e.confidence).low);
  e.log_high = std::min(0.0, e.log_p + half);
  if (half > std::log(10.0))
    e.warnings.emplace_back(
        "few activations carry the estimate: its interval spans more than two powers of ten");
}

}  // namespace

void QldConfig::validate() const {
  if (!(relative_ridge >= 0.0) || !std::isfinite(relative_ridge))
    throw InputError("ridge {}: expected a number from 0", relative_ridge);
  if (n_blocks < 2 || n_blocks > 4096)
    throw InputError("{} blocks: a jackknife needs at least 2 and takes at most 4096", n_blocks);
}

Estimate qld(const Head& head, const Activations& activations, const Target& target, const QldConfig& config,
             ThreadPool& pool) {
  config.validate();
  const Stopwatch watch;
  Estimate e{
      .method = "qld", .target = target.ids(), .guarantee = Guarantee::kModelBased, .seed = config.seed};
  const Cloud cloud = make_cloud(head, activations, pool);
  const Whitening w = whitening(cloud.moments, config.relative_ridge);
  // With ln_final one direction has no variance by construction; that is no reason to warn.
  if (const std::string warning = ridge_warning(w); !warning.empty() && !head.ln_final)
    e.warnings.push_back(warning);
  e.diagnostics.push_back({"ridge", w.ridge});

  Direction direction = shortest_accepting(head, w, target, pool);
  Counts counts(config.n_blocks, std::vector<std::uint64_t>(config.n_blocks, 0));
  if (direction.exists) {
    e.diagnostics.push_back({"shortest_vector", direction.shortest.length()});
    e.diagnostics.push_back({"kkt_residual", direction.shortest.kkt_residual});
    if (direction.shortest.length() == 0.0) direction.unit = nearest_face(head, w, target, pool);
    // a = u . d = (x - mean) . L^-T d; moving along d by 1 moves x by L d.
    const std::vector<double> dual = w.dual_direction(direction.unit);
    std::vector<double> a(cloud.n, 0.0);
    for (std::size_t i = 0; i < cloud.n; ++i)
      for (std::size_t j = 0; j < cloud.d; ++j) a[i] += (cloud.rows().row(i)[j] - w.mean[j]) * dual[j];
    const LineProblem line{.w_u = head.w_u,
                           .target = target,
                           .n = cloud.n,
                           .normed = cloud.rows(),
                           .slope = logit_slopes(head, times_l(w, direction.unit))};
    counts = count_pairs(a, a, accepted_intervals(line, pool), config.n_blocks, pool);
  } else {
    e.warnings.emplace_back("no activation whatever gives the target: its logit is never the largest");
  }
  fill_probability(e, counts, cloud.n);
  e.cost.score_evals = cloud.n;
  e.cost.flops = 2.0 * static_cast<double>(cloud.n) * static_cast<double>(cloud.d * head.d_vocab());
  e.cost.seconds = watch.seconds();
  return e;
}

namespace {

Method make_qld(SettingReader& s) {
  return {.calibration = take_calibration(s),
          .needs_next_token = true,
          .run = [](const Question& q, std::uint64_t seed, ThreadPool& pool, const Watch&) {
            return qld(*q.head, *q.activations, *q.next_token(), {.seed = seed}, pool);
          }};
}

}  // namespace

constinit const MethodRow kQldRow{.name = "qld",
                                  .help = "quadratic logit decomposition of activations",
                                  .settings = kCloudSettings,
                                  .colour = 2,
                                  .make = make_qld};

}  // namespace deeptail
