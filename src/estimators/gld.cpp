#include <algorithm>
#include <cmath>
#include <limits>

#include "core/stopwatch.h"
#include "estimators/cloud.h"
#include "estimators/method_list.h"

namespace deeptail {

namespace {

// log Pr[N(0, 1) > z].
double log_normal_tail(double z) {
  if (z < 30.0) return std::log(0.5 * std::erfc(z / std::sqrt(2.0)));
  const double t = 1.0 / (z * z);  // asymptotic: the first terms are exact to 1e-8 here
  return -0.5 * z * z - std::log(z * std::sqrt(2.0 * M_PI)) + std::log1p(-t + 3.0 * t * t - 15.0 * t * t * t);
}

}  // namespace

Estimate gld(const Head& head, const Activations& activations, const Target& target, ThreadPool& pool) {
  const Stopwatch watch;
  if (activations.d_model != head.d_model())
    throw InputError("activations of width {}, but the unembedding takes {}", activations.d_model,
                     head.d_model());
  if (activations.n < 2)
    throw InputError("{} activations: a standard deviation needs at least 2", activations.n);
  Estimate e{.method = "gld", .target = target.ids(), .guarantee = Guarantee::kModelBased};
  std::vector<Margin> found(activations.n);
  margins(head, target, activations.n, activations.rows(), pool, found);
  // The largest logit counts the target's own: the difference is never positive.
  const auto n = static_cast<double>(activations.n);
  double mean = 0.0, squares = 0.0;
  for (const Margin& m : found) mean += std::min(0.0f, m.value) / n;
  for (const Margin& m : found) squares += std::pow(std::min(0.0f, m.value) - mean, 2.0);
  const double deviation = std::sqrt(squares / (n - 1.0));
  const double z = deviation > 0.0 ? -mean / deviation : std::numeric_limits<double>::infinity();
  // Delta method for mean / deviation of a normal sample.
  const double error = 1.959963984540054 * std::sqrt((1.0 + 0.5 * z * z) / n);
  e.log_p = log_normal_tail(z);
  e.log_low = log_normal_tail(z + error);
  e.log_high = log_normal_tail(z - error);
  if (!std::isfinite(z)) {
    const bool always = mean == 0.0;  // the target's logit was the largest each time
    const Interval interval = clopper_pearson(always ? activations.n : 0, activations.n, e.confidence);
    e.log_p = always ? 0.0 : -std::numeric_limits<double>::infinity();
    e.log_low = std::log(interval.low);
    e.log_high = std::log(interval.high);
    if (!always) e.status = Status::kNotReachedUpperBound;
    e.warnings.emplace_back("all activations have the same logit difference: no tail can be fitted");
  }
  e.diagnostics = {{"mean", mean}, {"deviation", deviation}};
  e.cost.score_evals = activations.n;
  e.cost.flops = 2.0 * n * static_cast<double>(head.d_model() * head.d_vocab());
  e.cost.seconds = watch.seconds();
  return e;
}

namespace {

Method make_gld(SettingReader& s) {
  return {.calibration = take_calibration(s),
          .needs_next_token = true,
          .run = [](const Question& q, std::uint64_t seed, ThreadPool& pool, const Watch&) {
            Estimate estimate = gld(*q.head, *q.activations, *q.next_token(), pool);
            estimate.seed = seed;
            return estimate;
          }};
}

}  // namespace

constinit const MethodRow kGldRow{.name = "gld",
                                  .help = "Gaussian logit difference of activations",
                                  .settings = kCloudSettings,
                                  .colour = 4,
                                  .make = make_gld};

}  // namespace deeptail
