#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "deeptail/loss.h"
#include "loss/mean.h"

namespace deeptail {

namespace {

constexpr std::size_t kNoPair = std::numeric_limits<std::size_t>::max();

// a p^c + b in logarithms, which keeps a, b, c positive and makes the fit independent of scale. `level` is
// the log of a p^c at the mean log estimate.
using Theta = std::array<double, 3>;  // level, ln c, ln b
enum { kLevel, kLogC, kLogB };

struct Data {
  std::span<const double> q;  // [n]
  std::vector<double> log_p;  // [n], centred; -infinity at p = 0
  double centre;              // mean log of the positive estimates
  Theta lowest, highest;      // box that keeps every exponential in range
};

Data prepare(std::span<const double> q, std::span<const double> p) {
  Data data{q, {}, 0.0, {}, {}};
  std::size_t positive = 0;
  for (const double estimate : p) {
    data.log_p.push_back(std::log(estimate));
    if (estimate > 0.0) data.centre += data.log_p.back(), ++positive;
  }
  if (positive > 0) data.centre /= static_cast<double>(positive);
  for (double& log_p : data.log_p) log_p -= data.centre;
  const double log_qmin = std::log(*std::min_element(q.begin(), q.end()));
  data.lowest = {log_qmin - 46.0, -7.0, log_qmin - 46.0};  // 1e-20 of the rarest truth: as good as zero
  data.highest = {1.0, 3.0, 1.0};
  return data;
}

double power_part(const Data& data, const Theta& t, std::size_t i) {
  return std::exp(t[kLevel] + std::exp(t[kLogC]) * data.log_p[i]);
}

double loss_of_pair(const Data& data, const Theta& t, std::size_t i) {
  return itakura_saito(data.q[i], power_part(data, t, i) + std::exp(t[kLogB]));
}

double total_loss(const Data& data, const Theta& t, std::size_t left_out) {
  double sum = 0.0;
  for (std::size_t i = 0; i < data.q.size(); ++i)
    if (i != left_out) sum += loss_of_pair(data, t, i);
  return sum;
}

struct Normal {
  std::array<Theta, 3> matrix{};  // Fisher information, [3, 3]
  Theta gradient{};
};

// Itakura-Saito is the deviance of a Gamma model, so Fisher scoring fits it: with mu the calibrated estimate
// and J = d ln mu / d theta, the gradient is sum (1 - q/mu) J and the information sum J J^T.
Normal normal_equations(const Data& data, const Theta& t, std::size_t left_out) {
  Normal out;
  const double b = std::exp(t[kLogB]), c = std::exp(t[kLogC]);
  for (std::size_t i = 0; i < data.q.size(); ++i) {
    if (i == left_out) continue;
    const double power = power_part(data, t, i), mu = power + b;
    const double share = power / mu;
    const Theta jacobian{share, share > 0.0 ? share * c * data.log_p[i] : 0.0, b / mu};
    for (int r = 0; r < 3; ++r) {
      out.gradient[r] += (1.0 - data.q[i] / mu) * jacobian[r];
      for (int k = 0; k < 3; ++k) out.matrix[r][k] += jacobian[r] * jacobian[k];
    }
  }
  return out;
}

// Solves (M + damping diag M) step = -gradient by elimination; M is positive semidefinite, the damping makes
// it definite.
Theta damped_step(Normal normal, double damping) {
  auto& m = normal.matrix;
  Theta step;
  for (int r = 0; r < 3; ++r) {
    m[r][r] = m[r][r] * (1.0 + damping) + 1e-12;
    step[r] = -normal.gradient[r];
  }
  for (int r = 0; r < 3; ++r)
    for (int below = r + 1; below < 3; ++below) {
      const double factor = m[below][r] / m[r][r];
      for (int k = r; k < 3; ++k) m[below][k] -= factor * m[r][k];
      step[below] -= factor * step[r];
    }
  for (int r = 2; r >= 0; --r) {
    for (int k = r + 1; k < 3; ++k) step[r] -= m[r][k] * step[k];
    step[r] /= m[r][r];
  }
  return step;
}

Theta moved(const Data& data, Theta t, const Theta& step) {
  constexpr double kLongest = 3.0;  // a factor of 20 at once
  for (int r = 0; r < 3; ++r)
    t[r] = std::clamp(t[r] + std::clamp(step[r], -kLongest, kLongest), data.lowest[r], data.highest[r]);
  return t;
}

// Levenberg-Marquardt from `t`, without the pair `left_out`.
Theta fit_from(const Data& data, Theta t, std::size_t left_out) {
  constexpr int kMaxSteps = 200;
  constexpr double kConverged = 1e-13;
  double loss = total_loss(data, t, left_out), damping = 1e-3;
  for (int step = 0; step < kMaxSteps && damping < 1e12; ++step) {
    const Normal normal = normal_equations(data, t, left_out);
    const Theta trial = moved(data, t, damped_step(normal, damping));
    const double trial_loss = total_loss(data, trial, left_out);
    if (!(trial_loss < loss)) {
      damping *= 10.0;
      continue;
    }
    const bool converged = loss - trial_loss <= kConverged * (1.0 + loss);
    t = trial;
    loss = trial_loss;
    damping *= 0.1;
    if (converged) break;
  }
  return t;
}

// The loss is not convex in b, so the fit to all pairs starts from several shapes and keeps the best.
Theta fit_all(const Data& data) {
  const double log_mean_q = std::log(mean_of(data.q.size(), [&](std::size_t i) { return data.q[i]; }));
  Theta best{};
  double best_loss = std::numeric_limits<double>::infinity();
  for (const double c : {0.1, 0.4, 1.0})
    for (const double log_b : {log_mean_q - 1.0, data.lowest[kLogB] + 40.0, data.lowest[kLogB] + 20.0}) {
      const Theta t = fit_from(data, {log_mean_q, std::log(c), log_b}, kNoPair);
      const double loss = total_loss(data, t, kNoPair);
      if (loss < best_loss) best = t, best_loss = loss;
    }
  return best;
}

// Where no pair wants a positive b, the fit stops at some tiny one that only its starting point explains:
// make it zero.
Theta without_idle_b(const Data& data, Theta t, std::size_t left_out) {
  const double loss = total_loss(data, t, left_out);
  Theta zero = t;
  zero[kLogB] = -std::numeric_limits<double>::infinity();
  return total_loss(data, zero, left_out) <= loss + 1e-9 * (1.0 + loss) ? zero : t;
}

}  // namespace

Calibration calibrate(std::span<const double> q, std::span<const double> p, ThreadPool& pool) {
  const std::size_t n = q.size();
  if (n < 5) throw InputError("calibration fits 3 numbers and needs at least 5 pairs, found {}", n);
  const Data data = prepare(q, p);
  const Theta start = fit_all(data), fit = without_idle_b(data, start, kNoPair);
  const double c = std::exp(fit[kLogC]);

  // Loss and estimate of each pair under the fit to the others.
  std::vector<double> held_out(n), calibrated(n);
  pool.for_each_block(n, [&](std::size_t i, std::size_t) {
    const Theta t = without_idle_b(data, fit_from(data, start, i), i);
    calibrated[i] = power_part(data, t, i) + std::exp(t[kLogB]);
    held_out[i] = loss_of_pair(data, t, i);
  });
  return {.a = std::exp(fit[kLevel] - c * data.centre),
          .c = c,
          .b = std::exp(fit[kLogB]),
          .loss_uncalibrated = mean_of(n, [&](std::size_t i) { return itakura_saito(q[i], p[i]); }),
          .loss_fitted = total_loss(data, fit, kNoPair) / static_cast<double>(n),
          .loss_leave_one_out = mean_of(n, [&](std::size_t i) { return held_out[i]; }),
          .leave_one_out = std::move(calibrated)};
}

}  // namespace deeptail
