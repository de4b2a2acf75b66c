#include "core/hypotenuse.h"
#include "model/head/screen.h"

#include <algorithm>
#include <cmath>

namespace deeptail {

namespace {

// Mean and root mean square about it, per coordinate.
struct Spread {
  std::vector<float> centre;
  std::vector<double> rms;
};

// Without activations: ln_final gives every coordinate a known mean and variance.
Spread expected_spread(const Head& head) {
  Spread out{std::vector<float>(head.d_model(), 0.0f), std::vector<double>(head.d_model(), 1.0)};
  if (!head.ln_final) return out;
  for (std::size_t k = 0; k < head.d_model(); ++k) {
    if (head.ln_final->centred) out.centre[k] = head.ln_final->bias[k];
    out.rms[k] = std::abs(static_cast<double>(head.ln_final->weight[k]));
  }
  return out;
}

Spread measured_spread(std::size_t n, std::size_t d, const float* normed) {
  std::vector<double> sum(d, 0.0), squares(d, 0.0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < d; ++k) {
      const double x = normed[i * d + k];
      sum[k] += x;
      squares[k] += x * x;
    }
  Spread out{std::vector<float>(d), std::vector<double>(d)};
  for (std::size_t k = 0; k < d; ++k) {
    const double mean = sum[k] / static_cast<double>(n);
    out.centre[k] = static_cast<float>(mean);
    out.rms[k] = std::sqrt(std::max(0.0, squares[k] / static_cast<double>(n) - mean * mean));
  }
  return out;
}

// Powers of two that share out the sizes of x' and w evenly, coordinate by coordinate.
std::vector<float> balance(const Head& head, const std::vector<double>& x_rms) {
  std::vector<float> out(head.d_model(), 1.0f);
  for (std::size_t k = 0; k < out.size(); ++k) {
    double squares = 0.0;
    for (std::size_t j = 0; j < head.d_vocab(); ++j) squares += std::pow(double{head.w_u.at(k, j)}, 2);
    const double w_rms = std::sqrt(squares / static_cast<double>(head.d_vocab()));
    const double exponent = 0.5 * std::log2(w_rms / x_rms[k]);
    if (std::isfinite(exponent))
      out[k] = static_cast<float>(std::exp2(std::round(std::clamp(exponent, -20.0, 20.0))));
  }
  return out;
}

// The numbers of a column, in double and rounded up where they bound something.
struct Column {
  double m = 0, w = 0, q = 0, eps = 0, sigma = 0;  // w.centre + b, |w|, sigma |q|, |eps|, sigma
};

// Quantises column j of W_U into place p.
Column take_column(const Head& head, std::size_t j, std::size_t p, Screen::Tables& t) {
  float* w = t.w.data() + p * t.d;
  double m = head.w_u.bias()[j], w_squares = 0.0, top = 0.0;
  for (std::size_t k = 0; k < t.d; ++k) {
    w[k] = head.w_u.at(k, j);
    m += double{w[k]} * double{t.centre[k]};
    w_squares += double{w[k]} * double{w[k]};
    top = std::max(top, std::abs(double{w[k]} / double{t.stretch[k]}));
  }
  Column out{m, std::sqrt(w_squares) * kBoundSlack, 0, 0,
             static_cast<float>(std::max(top, 0x1p-100) / kScreenColumnMax)};
  for (std::size_t k = 0; k < t.d; ++k) {
    const double v = double{w[k]} / double{t.stretch[k]};
    const double q =
        std::clamp(std::nearbyint(v / out.sigma), -1.0 * kScreenColumnMax, 1.0 * kScreenColumnMax);
    t.columns.set(k, p, static_cast<int>(q));
    out.q += std::pow(out.sigma * q, 2);
    out.eps += std::pow(v - out.sigma * q, 2);
  }
  out.q = std::sqrt(out.q) * kBoundSlack, out.eps = std::sqrt(out.eps) * kBoundSlack;
  return out;
}

// Places by how high the logits of such activations reach: their mean and four standard deviations, as if the
// coordinates were independent.
std::vector<TokenId> likely_winners_first(const Head& head, const Spread& spread) {
  std::vector<double> mean(head.d_vocab()), squares(head.d_vocab(), 0.0);
  for (std::size_t j = 0; j < mean.size(); ++j) {
    mean[j] = head.w_u.bias()[j];
    for (std::size_t k = 0; k < head.d_model(); ++k) {
      const double w = head.w_u.at(k, j);
      mean[j] += w * double{spread.centre[k]};
      squares[j] += std::pow(w * spread.rms[k], 2);
    }
  }
  std::vector<TokenId> ids(head.d_vocab());
  for (std::size_t j = 0; j < ids.size(); ++j) ids[j] = static_cast<TokenId>(j);
  const auto reach = [&](TokenId id) {
    const auto j = static_cast<std::size_t>(id);
    return mean[j] + 4.0 * std::sqrt(squares[j]);
  };
  std::stable_sort(ids.begin(), ids.end(), [&](TokenId a, TokenId b) { return reach(a) > reach(b); });
  return ids;
}

std::vector<TokenId> by_frequency(std::span<const TokenId> said, std::size_t d_vocab) {
  std::vector<std::size_t> count(d_vocab, 0);
  for (const TokenId id : said) ++count[static_cast<std::size_t>(id)];
  std::vector<TokenId> ids;
  for (std::size_t j = 0; j < d_vocab; ++j)
    if (count[j] > 0) ids.push_back(static_cast<TokenId>(j));
  std::stable_sort(ids.begin(), ids.end(), [&](TokenId a, TokenId b) {
    return count[static_cast<std::size_t>(a)] > count[static_cast<std::size_t>(b)];
  });
  return ids;
}

// Quantises all columns and gathers what bounds them.
void fill_columns(const Head& head, ThreadPool& pool, Screen::Tables& t) {
  const std::size_t d_vocab = head.d_vocab(), block = 256;
  t.columns = ScreenColumns(t.d, d_vocab);
  t.w.resize(d_vocab * t.d), t.w_norm.resize(d_vocab), t.bias.resize(d_vocab);
  std::vector<Column> numbers(d_vocab);
  pool.for_each_block((d_vocab + block - 1) / block, [&](std::size_t b, std::size_t) {
    for (std::size_t p = b * block; p < std::min(d_vocab, (b + 1) * block); ++p)
      numbers[p] = take_column(head, static_cast<std::size_t>(t.ids[p]), p, t);
  });
  double q = 0.0, eps = 0.0;
  for (const Column& c : numbers) q += c.q, eps += c.eps;
  if (q > 0.0 && eps > 0.0) t.beta = std::clamp(eps / q, 1e-6, 1.0);
  bool finite = std::isfinite(q + eps);
  for (std::size_t p = 0; p < d_vocab; ++p) {
    const Column& c = numbers[p];
    const double slope = hypotenuse(c.q, c.eps / t.beta) * kBoundSlack;
    t.columns.step[p] = static_cast<float>(c.sigma);
    t.columns.slope[p] = rounded_up(slope), t.columns.offset[p] = rounded_up(c.m);
    t.bias[p] = head.w_u.bias()[static_cast<std::size_t>(t.ids[p])];
    t.w_norm[p] = rounded_up(c.w);
    finite = finite && std::isfinite(c.m + c.w + slope);
    auto& largest = t.largest;
    largest.w = std::max(largest.w, c.w), largest.b = std::max(largest.b, std::abs(double{t.bias[p]}));
    largest.m = std::max(largest.m, std::abs(c.m)), largest.q = std::max(largest.q, c.q);
    largest.slope = std::max(largest.slope, slope);
  }
  if (!finite) t.largest.w = INFINITY;  // then no row has bounds
}

}  // namespace

Screen::Screen(const Head& head, std::size_t n, ConstRows resid, ThreadPool& pool) {
  const std::size_t d = head.d_model();
  auto tables = std::make_unique<Tables>();
  tables->d = d;
  Spread spread = expected_spread(head);
  if (n > 0) {
    AlignedVector<float> normed(n * d);
    head.normalise(n, resid, {normed.data(), d});
    for (std::size_t i = 0; i < n * d; ++i)
      if (!std::isfinite(normed[i])) throw InputError("screen: activation {} is not finite", i / d);
    spread = measured_spread(n, d, normed.data());
    std::vector<TokenId> said(n);
    argmax(head, n, resid, pool, said);
    tables->winners = by_frequency(said, head.d_vocab());
  }
  tables->centre = spread.centre;
  tables->stretch = balance(head, spread.rms);
  tables->ids = likely_winners_first(head, spread);
  fill_columns(head, pool, *tables);
  tables_ = std::move(tables);
}

Screen::~Screen() = default;
Screen::Screen(Screen&&) noexcept = default;
const std::vector<TokenId>& Screen::usual_winners() const { return tables_->winners; }

}  // namespace deeptail
