#include "estimators/shortest_vector.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/hypotenuse.h"

namespace deeptail {

namespace {

constexpr double kViolated = 1e-12;  // of |normal| max(1, |x|): below is rounding
// A normal whose part outside the active ones is this small adds nothing.
constexpr double kDependent = 1e-10;
constexpr std::size_t kWorking = 64;  // constraints taken in by one full pricing
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double dot(std::size_t d, const double* a, const double* b) {
  double sum[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= d; i += 4)
    for (std::size_t l = 0; l < 4; ++l) sum[l] += a[i + l] * b[i + l];
  for (; i < d; ++i) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}
void add(std::size_t d, double factor, const double* x, double* y) {
  for (std::size_t i = 0; i < d; ++i) y[i] += factor * x[i];
}

// Active normals N = Q R: Q [q][d] with orthonormal rows here, R upper triangular, kept by columns.
class ActiveSet {
 public:
  explicit ActiveSet(std::size_t d) : d_(d) {}

  std::size_t size() const { return ids.size(); }
  // Splits a normal: coefficients c in Q, rest = normal - Q c. Twice, since once leaves rounding behind.
  void split(const double* normal, std::vector<double>& c, std::vector<double>& rest) const {
    c.assign(size(), 0.0);
    rest.assign(normal, normal + d_);
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t k = 0; k < size(); ++k) {
        const double part = dot(d_, q_[k].data(), rest.data());
        c[k] += part;
        add(d_, -part, q_[k].data(), rest.data());
      }
  }
  // Solves R r = c.
  std::vector<double> solve(std::vector<double> c) const {
    for (std::size_t k = size(); k-- > 0;) {
      c[k] /= r_[k][k];
      for (std::size_t i = 0; i < k; ++i) c[i] -= r_[k][i] * c[k];
    }
    return c;
  }
  // Solves R^T y = c.
  std::vector<double> solve_transposed(std::vector<double> c) const {
    for (std::size_t k = 0; k < size(); ++k) {
      for (std::size_t i = 0; i < k; ++i) c[k] -= r_[k][i] * c[i];
      c[k] /= r_[k][k];
    }
    return c;
  }
  void append(std::size_t id, double multiplier, std::vector<double> c, std::vector<double> rest,
              double norm) {
    for (double& value : rest) value /= norm;
    c.push_back(norm);
    q_.push_back(std::move(rest));
    r_.push_back(std::move(c));
    ids.push_back(id);
    multipliers.push_back(multiplier);
  }
  // Takes one out; Givens rotations make R triangular again.
  void drop(std::size_t k) {
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(k));
    multipliers.erase(multipliers.begin() + static_cast<std::ptrdiff_t>(k));
    r_.erase(r_.begin() + static_cast<std::ptrdiff_t>(k));
    for (std::size_t i = k; i < r_.size(); ++i) {
      const double a = r_[i][i], b = r_[i][i + 1], h = hypotenuse(a, b), cosine = a / h, sine = b / h;
      for (std::size_t j = i; j < r_.size(); ++j) {
        const double upper = r_[j][i], lower = r_[j][i + 1];
        r_[j][i] = cosine * upper + sine * lower;
        r_[j][i + 1] = cosine * lower - sine * upper;
      }
      for (std::size_t j = 0; j < d_; ++j) {
        const double upper = q_[i][j], lower = q_[i + 1][j];
        q_[i][j] = cosine * upper + sine * lower;
        q_[i + 1][j] = cosine * lower - sine * upper;
      }
      r_[i].resize(i + 1);
    }
    q_.pop_back();
  }
  // The point of the active faces nearest to 0, from scratch: x = Q R^-T (-offsets).
  std::vector<double> nearest_point(const std::vector<double>& offsets) const {
    std::vector<double> c(size()), x(d_, 0.0);
    for (std::size_t k = 0; k < size(); ++k) c[k] = -offsets[ids[k]];
    c = solve_transposed(std::move(c));
    for (std::size_t k = 0; k < size(); ++k) add(d_, c[k], q_[k].data(), x.data());
    return x;
  }

  std::vector<std::size_t> ids;
  std::vector<double> multipliers;

 private:
  std::size_t d_;
  std::vector<std::vector<double>> q_;  // [q][d]
  std::vector<std::vector<double>> r_;  // [q][k + 1]: column k of R
};

class Solver {
 public:
  Solver(const HalfSpaces& p, ThreadPool& pool)
      : p_(p), pool_(pool), norms_(p.n), active_(p.d), x_(p.d, 0.0) {
    for (std::size_t i = 0; i < p.n; ++i) norms_[i] = std::sqrt(dot(p.d, p.normal(i), p.normal(i)));
    slack_.resize(p.n);
  }

  ShortestVector solve() {
    bool feasible = true;
    for (std::vector<std::size_t> working; feasible && !(working = most_violated()).empty();)
      for (std::size_t id; feasible && (id = worst_of(working)) < p_.n;) feasible = take_in(id);
    ShortestVector out{.feasible = feasible, .x = x_, .n_active = active_.size(), .n_steps = n_steps_};
    if (feasible) polish(out);
    return out;
  }

 private:
  double slack(std::size_t i) const { return dot(p_.d, p_.normal(i), x_.data()) + p_.offsets[i]; }
  double tolerance() const { return kViolated * std::max(1.0, std::sqrt(dot(p_.d, x_.data(), x_.data()))); }
  // Negative beyond rounding: the distance to the constraint. A zero normal can only be met by its offset.
  double violation(double slack_i, std::size_t i) const {
    return norms_[i] > 0.0 ? -slack_i / norms_[i] : (slack_i < 0.0 ? kInfinity : 0.0);
  }

  void price() {
    constexpr std::size_t kBlock = 512;
    pool_.for_each_block((p_.n + kBlock - 1) / kBlock, [&](std::size_t block, std::size_t) {
      for (std::size_t i = block * kBlock; i < std::min(p_.n, (block + 1) * kBlock); ++i)
        slack_[i] = slack(i);
    });
  }
  std::vector<std::size_t> most_violated() {
    price();
    std::vector<std::size_t> ids;
    const double limit = tolerance();
    for (std::size_t i = 0; i < p_.n; ++i)
      if (violation(slack_[i], i) > limit) ids.push_back(i);
    const std::size_t count = std::min(kWorking, ids.size());
    std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(),
                      [&](std::size_t a, std::size_t b) {
                        const double va = violation(slack_[a], a), vb = violation(slack_[b], b);
                        return va != vb ? va > vb : a < b;
                      });
    ids.resize(count);
    return ids;
  }
  // The most violated of these; p_.n when none is.
  std::size_t worst_of(const std::vector<std::size_t>& working) const {
    std::size_t worst = p_.n;
    double most = tolerance();
    for (const std::size_t i : working)
      if (const double v = violation(slack(i), i); v > most) most = v, worst = i;
    return worst;
  }

  // Goldfarb-Idnani step 2: moves until constraint `id` holds with equality; false when the polyhedron is
  // empty.
  bool take_in(std::size_t id) {
    if (norms_[id] == 0.0) return false;
    double multiplier = 0.0;
    std::vector<double> c, rest;
    while (true) {
      ++n_steps_;
      active_.split(p_.normal(id), c, rest);
      const double rest_norm = std::sqrt(dot(p_.d, rest.data(), rest.data()));
      const std::vector<double> r = active_.solve(c);
      const bool independent = rest_norm > kDependent * norms_[id];
      std::size_t blocking = active_.size();
      double dual_step = kInfinity;
      for (std::size_t k = 0; k < active_.size(); ++k)
        if (r[k] > 0.0 && active_.multipliers[k] / r[k] < dual_step)
          dual_step = active_.multipliers[k] / r[k], blocking = k;
      const double full_step = independent ? -slack(id) / (rest_norm * rest_norm) : kInfinity;
      const double step = std::min(dual_step, full_step);
      if (step == kInfinity) return false;
      if (independent) add(p_.d, step, rest.data(), x_.data());
      for (std::size_t k = 0; k < active_.size(); ++k) active_.multipliers[k] -= step * r[k];
      multiplier += step;
      if (full_step <= dual_step) {
        active_.append(id, multiplier, std::move(c), std::move(rest), rest_norm);
        return true;
      }
      active_.drop(blocking);
    }
  }

  // x and multipliers anew from the active set, then how well the conditions hold.
  void polish(ShortestVector& out) {
    if (active_.size() > 0) x_ = active_.nearest_point(p_.offsets);
    std::vector<double> c, rest;
    active_.split(x_.data(), c, rest);  // x = Q c when it is a combination of the active normals
    active_.multipliers = active_.solve(c);
    const double length = std::sqrt(dot(p_.d, x_.data(), x_.data())), scale = std::max(length, 1e-300);
    std::vector<double> gap = x_;
    price();
    double residual = 0.0;
    for (std::size_t k = 0; k < active_.size(); ++k) {
      const std::size_t id = active_.ids[k];
      const double multiplier = active_.multipliers[k];
      add(p_.d, -multiplier, p_.normal(id), gap.data());
      residual = std::max(
          {residual, -multiplier * norms_[id] / scale, std::abs(multiplier * slack_[id]) / (scale * scale)});
    }
    residual = std::max(residual, std::sqrt(dot(p_.d, gap.data(), gap.data())) / scale);
    for (std::size_t i = 0; i < p_.n; ++i)
      residual = std::max(residual, violation(slack_[i], i) / std::max(1.0, length));
    out.x = x_;
    out.kkt_residual = residual;
  }

  const HalfSpaces& p_;
  ThreadPool& pool_;
  std::vector<double> norms_, slack_;  // [n]
  ActiveSet active_;
  std::vector<double> x_;  // [d]
  std::size_t n_steps_ = 0;
};

}  // namespace

double ShortestVector::length() const { return std::sqrt(dot(x.size(), x.data(), x.data())); }

ShortestVector shortest_vector(const HalfSpaces& polyhedron, ThreadPool& pool) {
  return Solver(polyhedron, pool).solve();
}

}  // namespace deeptail
