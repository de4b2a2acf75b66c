// The activations that a splitting run in activation space asks about: proposals of a random walk that keeps
// a Gaussian fitted to given activations and stays above a level. Made here so that the benchmark needs no
// estimator.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>

#include "deeptail/model.h"

namespace deeptail {

struct ScoreRows {
  float level = 0.0f;
  double accepted = 0.0;      // fraction of the proposals
  AlignedVector<float> rows;  // [n, d_model] before ln_final
};

// x = mean + factor z, z standard normal.
struct Gaussian {
  std::vector<double> mean, factor;  // [d], [d, d] lower triangle
};

inline Gaussian fit_gaussian(std::size_t n, std::size_t d, ConstRows x) {
  Gaussian g{std::vector<double>(d, 0.0), std::vector<double>(d * d, 0.0)};
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < d; ++k) g.mean[k] += x.row(i)[k] / static_cast<double>(n);
  std::vector<double>& c = g.factor;
  std::vector<double> v(d);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < d; ++k) v[k] = x.row(i)[k] - g.mean[k];
    for (std::size_t a = 0; a < d; ++a)
      for (std::size_t b = 0; b <= a; ++b) c[a * d + b] += v[a] * v[b] / static_cast<double>(n);
  }
  double trace = 0.0;
  for (std::size_t k = 0; k < d; ++k) trace += c[k * d + k];
  for (std::size_t k = 0; k < d; ++k) c[k * d + k] += 1e-6 * trace / static_cast<double>(d);
  for (std::size_t i = 0; i < d; ++i)  // Cholesky in place
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = c[i * d + j];
      for (std::size_t k = 0; k < j; ++k) sum -= c[i * d + k] * c[j * d + k];
      c[i * d + j] = i == j ? std::sqrt(sum) : sum / c[j * d + j];
    }
  return g;
}

// Particles z: [n, d] at rising levels; every level is the median margin, until it reaches 0.
class ScoreWalk {
 public:
  ScoreWalk(const Head& head, const Target& target, const Screen& screen, Gaussian gaussian, std::size_t n,
            ThreadPool& pool)
      : head_(head),
        target_(target),
        test_(head, target, {}, &screen),
        gaussian_(std::move(gaussian)),
        n_(n),
        pool_(pool) {
    z_.resize(n * head.d_model());
    for (double& v : z_) v = normal_(engine_);
    for (std::size_t i = 0; i < pool.size(); ++i) scratch_.push_back(test_.make_scratch());
  }

  // One batch of proposals per level, the last of `moves` moves there.
  std::vector<ScoreRows> run(std::size_t moves, std::size_t max_levels) {
    std::vector<ScoreRows> out;
    for (float level = -1.0f; level < 0.0f && out.size() < max_levels;) {
      level = std::min(0.0f, rise());
      for (std::size_t move = 0; move < moves; ++move) last_ = propose(level);
      out.push_back(std::move(last_));
    }
    return out;
  }

 private:
  AlignedVector<float> activations(const std::vector<double>& z) const {
    const std::size_t d = head_.d_model();
    AlignedVector<float> x(n_ * d);
    pool_.for_each_block(n_, [&](std::size_t i, std::size_t) {
      for (std::size_t a = 0; a < d; ++a) {
        double sum = gaussian_.mean[a];
        for (std::size_t b = 0; b <= a; ++b) sum += gaussian_.factor[a * d + b] * z[i * d + b];
        x[i * d + a] = static_cast<float>(sum);
      }
    });
    return x;
  }

  // The median margin becomes the level; those below it become copies of those above.
  float rise() {
    const std::size_t d = head_.d_model();
    const AlignedVector<float> x = activations(z_);
    std::vector<Margin> margin(n_);
    margins(head_, target_, n_, {x.data(), d}, pool_, margin);
    std::vector<float> sorted(n_);
    for (std::size_t i = 0; i < n_; ++i) sorted[i] = margin[i].value;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(n_ / 2), sorted.end());
    const float level = std::min(0.0f, sorted[n_ / 2]);
    for (std::size_t i = 0, from = 0; i < n_; ++i) {
      if (margin[i].value >= level) continue;
      while (margin[from].value < level) from = (from + 1) % n_;
      std::copy_n(z_.data() + from * d, d, z_.data() + i * d);
      from = (from + 1) % n_;
    }
    return level;
  }

  // pCN: z' = sqrt(1 - beta^2) z + beta xi keeps the Gaussian, so only the level decides.
  ScoreRows propose(float level) {
    const std::size_t d = head_.d_model(), block = 96;
    std::vector<double> moved = z_;
    for (double& v : moved) v = std::sqrt(1.0 - beta_ * beta_) * v + beta_ * normal_(engine_);
    ScoreRows out{level, 0.0, activations(moved)};
    std::vector<std::uint8_t> accept(n_);
    pool_.for_each_block((n_ + block - 1) / block, [&](std::size_t b, std::size_t worker) {
      const std::size_t first = b * block, count = std::min(block, n_ - first);
      test_.at_least(level, count, ConstRows{out.rows.data(), d}.from(first),
                     std::span(accept).subspan(first, count), *scratch_[worker]);
    });
    for (std::size_t i = 0; i < n_; ++i)
      if (accept[i]) {
        out.accepted += 1.0 / static_cast<double>(n_);
        std::copy_n(moved.data() + i * d, d, z_.data() + i * d);
      }
    if (out.accepted < 0.3) beta_ *= 0.85;
    if (out.accepted > 0.5) beta_ = std::min(1.0, beta_ * 1.15);
    return out;
  }

  const Head& head_;
  const Target& target_;
  MarginTest test_;
  Gaussian gaussian_;
  std::size_t n_;
  ThreadPool& pool_;
  std::vector<MarginTest::ScratchPtr> scratch_;
  std::vector<double> z_;
  double beta_ = 0.7;
  ScoreRows last_;
  std::mt19937_64 engine_{1};
  std::normal_distribution<double> normal_;
};

// The token that comes closest to being said without ever being said: a rare target worth asking about.
inline TokenId rare_token(const Head& head, std::size_t n, ConstRows resid, ThreadPool& pool) {
  const std::size_t d_vocab = head.d_vocab(), block = 64;
  std::vector<float> nearest(d_vocab, -INFINITY);
  AlignedVector<float> all(block * d_vocab);
  for (std::size_t first = 0; first + block <= n; first += block) {
    logits(head, block, resid.from(first), pool, {all.data(), d_vocab});
    for (std::size_t i = 0; i < block; ++i) {
      const float* row = all.data() + i * d_vocab;
      const float top = best_of(d_vocab, row).value;
      for (std::size_t j = 0; j < d_vocab; ++j) nearest[j] = std::max(nearest[j], row[j] - top);
    }
  }
  for (float& v : nearest)
    if (v == 0.0f) v = -INFINITY;  // was said
  return static_cast<TokenId>(best_of(d_vocab, nearest.data()).index);
}

}  // namespace deeptail
