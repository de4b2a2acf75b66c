// The published program's behaviour, defects included:
//   1. "whitened" samples are act - mean L^-T, so they are neither centred nor scaled;
//   2. the full sample stands where its part orthogonal to d belongs;
//   3. the search for the shortest vector counts constraints met by less than a tolerance as violated, and
//   stops
//      at the first feasible point after 200 random projections instead of the shortest one.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.h"
#include "core/stopwatch.h"
#include "estimators/cloud.h"
#include "estimators/line_counts.h"
#include "estimators/method_list.h"

namespace deeptail {

namespace {

constexpr double kEpsilon = 1e-5;  // its ridge, absolute
constexpr std::size_t kRepetitions = 200, kMaxSteps = 100 * kRepetitions;
constexpr double kTolerance = 1e-9, kShrink = 0.95;

struct Projection {
  bool feasible = false;
  std::vector<double> x;
};

// Projects onto randomly chosen violated constraints; early feasible points are shrunk towards 0.
Projection random_projection(const HalfSpaces& p, std::uint64_t seed, ThreadPool& pool) {
  Projection out{.x = std::vector<double>(p.d, 0.0)};
  std::vector<double> slack = p.offsets;
  std::vector<std::size_t> unsatisfied;
  constexpr std::size_t kBlock = 1024;
  for (std::size_t step = 0; step < kMaxSteps; ++step) {
    unsatisfied.clear();
    for (std::size_t i = 0; i < p.n; ++i)
      if (slack[i] < kTolerance) unsatisfied.push_back(i);
    if (unsatisfied.empty()) break;
    const std::uint64_t u = uniform64({seed, Stream::kProjection}, step, 0);
    const std::size_t chosen = unsatisfied[u % unsatisfied.size()];
    double norm = 0.0;
    for (std::size_t j = 0; j < p.d; ++j) norm += p.normal(chosen)[j] * p.normal(chosen)[j];
    if (norm == 0.0) continue;
    for (std::size_t j = 0; j < p.d; ++j) out.x[j] -= slack[chosen] / norm * p.normal(chosen)[j];
    pool.for_each_block((p.n + kBlock - 1) / kBlock, [&](std::size_t block, std::size_t) {
      for (std::size_t i = block * kBlock; i < std::min(p.n, (block + 1) * kBlock); ++i) {
        slack[i] = p.offsets[i];
        for (std::size_t j = 0; j < p.d; ++j) slack[i] += p.normal(i)[j] * out.x[j];
      }
    });
    // In the published program fp32 rounding decides; the tolerance of doubles stands in for it.
    if (*std::min_element(slack.begin(), slack.end()) < -kTolerance) continue;
    out.feasible = true;
    if (step >= kRepetitions) break;
    for (std::size_t j = 0; j < p.d; ++j) out.x[j] *= kShrink;
    for (std::size_t i = 0; i < p.n; ++i) slack[i] = kShrink * (slack[i] - p.offsets[i]) + p.offsets[i];
  }
  return out;
}

// Logits as the published program sees them: z = y (L^T W_U) + mean W_U + b_U for samples y.
PackedMatrix pulled_back(const Head& head, const Whitening& w) {
  const std::size_t d = w.d, d_vocab = head.d_vocab();
  std::vector<double> values(d * d_vocab, 0.0), bias(head.w_u.bias(), head.w_u.bias() + d_vocab);
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t k = 0; k < d_vocab; ++k) {
      const double weight = head.w_u.at(i, k);
      bias[k] += w.mean[i] * weight;
      for (std::size_t j = 0; j <= i; ++j) values[j * d_vocab + k] += w.l[i * d + j] * weight;
    }
  return {std::vector<float>(values.begin(), values.end()), d, d_vocab,
          std::vector<float>(bias.begin(), bias.end())};
}

// act - mean L^-T: [n, d].
AlignedVector<float> unwhitened_samples(const Cloud& cloud, const Whitening& w) {
  std::vector<double> shift(w.mean);
  AlignedVector<float> out(cloud.n * cloud.d);
  for (std::size_t i = 0; i < w.d; ++i) {  // L y = mean
    for (std::size_t k = 0; k < i; ++k) shift[i] -= w.l[i * w.d + k] * shift[k];
    shift[i] /= w.l[i * w.d + i];
  }
  for (std::size_t i = 0; i < cloud.n; ++i)
    for (std::size_t j = 0; j < cloud.d; ++j)
      out[i * cloud.d + j] = static_cast<float>(cloud.rows().row(i)[j] - shift[j]);
  return out;
}

// Pairs counted with the full sample where its orthogonal part belongs, so steps start at 0 for all.
double count_fraction(const Head& head, const Target& target, const Whitening& w, const Cloud& cloud,
                      const std::vector<double>& direction, ThreadPool& pool) {
  const PackedMatrix weights = pulled_back(head, w);
  const AlignedVector<float> samples = unwhitened_samples(cloud, w);
  std::vector<double> slope(weights.n(), 0.0), a(cloud.n, 0.0);
  for (std::size_t j = 0; j < w.d; ++j)
    for (std::size_t k = 0; k < weights.n(); ++k) slope[k] += direction[j] * weights.at(j, k);
  for (std::size_t i = 0; i < cloud.n; ++i)
    for (std::size_t j = 0; j < w.d; ++j) a[i] += samples[i * w.d + j] * direction[j];
  const LineProblem line{.w_u = weights,
                         .target = target,
                         .n = cloud.n,
                         .normed = {samples.data(), cloud.d},
                         .slope = std::move(slope)};
  const auto counts =
      count_pairs(a, std::vector<double>(cloud.n, 0.0), accepted_intervals(line, pool), 1, pool);
  return static_cast<double>(counts[0][0]) / (static_cast<double>(cloud.n) * static_cast<double>(cloud.n));
}

}  // namespace

Estimate qld_arc(const Head& head, const Activations& activations, const Target& target,
                 const QldConfig& config, ThreadPool& pool) {
  config.validate();
  if (target.ids().size() != 1)
    throw InputError("method qld-arc: expected one target token, found {}", target.ids().size());
  const Stopwatch watch;
  Estimate e{
      .method = "qld-arc", .target = target.ids(), .guarantee = Guarantee::kModelBased, .seed = config.seed};
  const Cloud cloud = make_cloud(head, activations, pool);
  double trace = 0.0;
  for (std::size_t i = 0; i < cloud.d; ++i) trace += cloud.moments.covariance[i * cloud.d + i];
  const Whitening w = whitening(cloud.moments, kEpsilon * static_cast<double>(cloud.d) / trace);
  const HalfSpaces region = winning_region(head, w, target.ids().front(), target, pool);
  Projection projection = random_projection(region, config.seed, pool);
  double length = 0.0;
  for (const double x : projection.x) length += x * x;
  if (!projection.feasible)
    e.warnings.emplace_back("the randomised projection found no accepting vector; its last point stands in");
  for (double& x : projection.x) x /= length > 0.0 ? std::sqrt(length) : 1.0;
  const double p = count_fraction(head, target, w, cloud, projection.x, pool);
  e.warnings.emplace_back("qld-arc repeats the published program's errors and is for comparison only");
  e.log_p = std::log(p);
  // No interval is published; anything is possible.
  e.log_low = -std::numeric_limits<double>::infinity();
  e.log_high = 0.0;
  if (p == 0.0) e.status = Status::kNotReachedUpperBound;
  e.diagnostics.push_back({"ridge", w.ridge});
  e.cost.score_evals = cloud.n;
  e.cost.flops = 2.0 * static_cast<double>(cloud.n) * static_cast<double>(cloud.d * head.d_vocab());
  e.cost.seconds = watch.seconds();
  return e;
}

namespace {

Method make_qld_arc(SettingReader& s) {
  return {.calibration = take_calibration(s),
          .needs_next_token = true,
          .one_token = true,
          .run = [](const Question& q, std::uint64_t seed, ThreadPool& pool, const Watch&) {
            return qld_arc(*q.head, *q.activations, *q.next_token(), {.seed = seed}, pool);
          }};
}

}  // namespace

constinit const MethodRow kQldArcRow{.name = "qld-arc",
                                     .help = "qld as its published program computes it, for comparison",
                                     .settings = kCloudSettings,
                                     .colour = 3,
                                     .make = make_qld_arc};

}  // namespace deeptail
