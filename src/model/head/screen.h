// What a Screen holds, and what it asks of one row.
//
// Notation: u = 2^-24, gamma(n) = n u / (1 - n u), norms are Euclidean. One column of W_U is w, its bias b; a
// row after ln_final is x. The logit is the fp32 chain of compute.h, off the real x.w + b by at most gamma(d
// + 1) (|x| |w| + |b|); on a CPU without FMA, gamma(2 d + 2).
//
//   x' = fl(x - centre), so that x = centre + x' + xi with |xi| <= u |x'|
//   m  = w.centre + b
//   z  = x' times a power of two per coordinate, v = w divided by it: exact, and v.z = w.x'
//   z  = tau p + eta, v = sigma q + eps: p and q integers, tau one per row, sigma one per column
//
//   x.w + b = m + w.x' + w.xi = m + sigma tau q.p + sigma q.eta + eps.z + w.xi
//
// so  logit <= sigma tau q.p + m + (sigma |q| |eta| + |eps| |z|) + kappa,
// where kappa = u |w| |x'| + gamma(d + 1) (|x| |w| + |b|) + the rounding of the bound itself, with the
// largest |w| and |b| of all columns. The bracket is at most slope * reach, by Cauchy-Schwarz, with
//   slope = |(sigma |q|, |eps| / beta)|, reach = |(|eta|, beta |z|)|, any beta > 0.
#pragma once

#include <cmath>

#include "deeptail/model.h"

namespace deeptail {

inline constexpr double kBoundSlack = 1.0 + 1e-6;  // over every rounding of the bounds' own double arithmetic
inline float rounded_up(double x) { return std::nextafter(static_cast<float>(x), INFINITY); }
inline float rounded_down(double x) { return std::nextafter(static_cast<float>(x), -INFINITY); }

// Columns stand in an order of their own, likely winners first: place p is token ids[p].
struct Screen::Tables {
  std::size_t d = 0;
  std::vector<float> centre;   // [d]
  std::vector<float> stretch;  // [d]: powers of two
  ScreenColumns columns;       // q, sigma, slope, m
  double beta = 1.0;
  std::vector<TokenId> ids;   // [d_vocab]
  AlignedVector<float> w;     // [d_vocab, d]: W_U's columns, one after another
  std::vector<float> w_norm;  // [d_vocab], rounded up
  std::vector<float> bias;    // [d_vocab]
  std::vector<TokenId> winners;

  // Largest over the columns, rounded up.
  struct Largest {
    double w = 0, b = 0, m = 0, q = 0, slope = 0;  // |w|, |b|, |m|, sigma |q|, slope
  } largest;
};

// Rows made ready for the screen, closed up as they leave.
class ScreenedRows {
 public:
  ScreenedRows(const Screen::Tables& tables, std::size_t capacity);

  // Takes rows normed: [n, d]. ceiling[i]: no logit below it matters to row i. A row with numbers that are
  // not finite, or so large that fp32 might overflow, has no bounds: all its columns stay open.
  void prepare(std::size_t n, ConstRows normed, std::span<const double> ceiling);
  // Row `to` becomes row `from`.
  void move(std::size_t from, std::size_t to);

  // bits: [n, count] as screen_panels.
  void screen(std::size_t n, std::size_t first, std::size_t count, std::uint16_t* bits) const;
  // Half the width of an interval around fl(row_dots + bias) that holds the logit of the column at `place`;
  // infinite for a row without bounds.
  double logit_error(std::size_t row, std::size_t place) const {
    return error_factor_ * (x_norm_[row] * static_cast<double>(t_.w_norm[place]) +
                            std::abs(static_cast<double>(t_.bias[place])));
  }
  bool bounded(std::size_t row) const { return x_norm_[row] < INFINITY; }
  // fl(row_dots + bias) below this is below the ceiling, whatever the column.
  float clear_below(std::size_t row) const { return clear_below_[row]; }

 private:
  const Screen::Tables& t_;
  double chain_error_;              // gamma(d + 1)
  double error_factor_;             // of logit_error
  AlignedVector<float> z_;          // [d]
  AlignedVector<std::int8_t> p_;    // [capacity, columns.k()]
  std::vector<ScreenRow> bounds_;   // [capacity]
  std::vector<double> x_norm_;      // [capacity]
  std::vector<float> clear_below_;  // [capacity]
};

}  // namespace deeptail
