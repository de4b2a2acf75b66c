#include <gtest/gtest.h>

#include <limits>

#include "compute/reference.h"
#include "unit/compute/kernel_checks.h"

namespace deeptail {
namespace {

const std::size_t kWidths[] = {1, 2, 15, 16, 17, 33, 64, 100, 128, 512};

LayerNorm some_layernorm(std::size_t d) { return {random_values(d, 11), random_values(d, 12), 1e-5f}; }
LayerNorm some_rms_norm(std::size_t d) { return {random_values(d, 11), {}, 1e-5f, /*centred=*/false}; }

TEST(LayerNorm, EqualsTheReference) {
  for (const std::size_t d : kWidths) {
    const auto x = random_values(3 * d, 1, 5.0f);
    const LayerNorm ln = some_layernorm(d);
    AlignedVector<float> out(3 * d), expected(3 * d);
    layernorm(3, {x.data(), d}, ln, {out.data(), d});
    for (std::size_t i = 0; i < 3; ++i)
      reference::layernorm_row(x.data() + i * d, ln, expected.data() + i * d);
    for (std::size_t i = 0; i < out.size(); ++i) expect_same(out[i], expected[i]);
  }
}

TEST(LayerNorm, KeepsDigitsUnderALargeMean) {
  AlignedVector<float> x(64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 4096.0f + (i % 2 == 0 ? 1.0f : -1.0f);
  const LayerNorm ln{AlignedVector<float>(64, 1.0f), AlignedVector<float>(64, 0.0f), 1e-5f};
  AlignedVector<float> out(64);
  layernorm(1, {x.data(), 64}, ln, {out.data(), 64});
  for (std::size_t i = 0; i < 64; ++i) EXPECT_NEAR(out[i], i % 2 == 0 ? 1.0f : -1.0f, 1e-5f);
}

// d sum(weights * layernorm(x)) / dx by central differences in double precision.
TEST(LayerNorm, BackwardEqualsDifferences) {
  for (const std::size_t d : {5, 16, 33}) {
    const auto x = random_values(d, 1), g = random_values(d, 2);
    const LayerNorm ln = some_layernorm(d);
    AlignedVector<float> out(d), stats(2), dx(d, 0.0f);
    layernorm(1, {x.data(), d}, ln, {out.data(), d}, stats.data());
    layernorm_backward(1, {x.data(), d}, stats.data(), ln, {g.data(), d}, {dx.data(), d});
    const auto loss = [&](std::vector<double> v) {
      double mean = 0, var = 0, total = 0;
      for (double a : v) mean += a / static_cast<double>(d);
      for (double a : v) var += (a - mean) * (a - mean) / static_cast<double>(d);
      for (std::size_t i = 0; i < d; ++i)
        total += g[i] * ((v[i] - mean) / std::sqrt(var + 1e-5) * ln.weight[i]);
      return total;
    };
    for (std::size_t i = 0; i < d; ++i) {
      std::vector<double> up(x.begin(), x.end()), down = up;
      up[i] += 1e-5, down[i] -= 1e-5;
      EXPECT_NEAR(dx[i], (loss(up) - loss(down)) / 2e-5, 2e-4);
    }
  }
}

TEST(RmsNorm, EqualsTheReference) {
  for (const std::size_t d : kWidths) {
    const auto x = random_values(3 * d, 1, 5.0f);
    const LayerNorm norm = some_rms_norm(d);
    AlignedVector<float> out(3 * d), expected(3 * d), stats(6);
    layernorm(3, {x.data(), d}, norm, {out.data(), d}, stats.data());
    for (std::size_t i = 0; i < 3; ++i) {
      reference::rms_norm_row(x.data() + i * d, norm, expected.data() + i * d);
      EXPECT_EQ(stats[2 * i], 0.0f);
    }
    for (std::size_t i = 0; i < out.size(); ++i) expect_same(out[i], expected[i]);
  }
}

TEST(RmsNorm, BackwardEqualsDifferences) {
  for (const std::size_t d : {5, 16, 33}) {
    const auto x = random_values(d, 1), g = random_values(d, 2);
    const LayerNorm norm = some_rms_norm(d);
    AlignedVector<float> out(d), stats(2), dx(d, 0.0f);
    layernorm(1, {x.data(), d}, norm, {out.data(), d}, stats.data());
    layernorm_backward(1, {x.data(), d}, stats.data(), norm, {g.data(), d}, {dx.data(), d});
    const auto loss = [&](const std::vector<double>& v) {
      double squares = 0, total = 0;
      for (const double a : v) squares += a * a / static_cast<double>(d);
      for (std::size_t i = 0; i < d; ++i) total += g[i] * (v[i] / std::sqrt(squares + 1e-5) * norm.weight[i]);
      return total;
    };
    for (std::size_t i = 0; i < d; ++i) {
      std::vector<double> up(x.begin(), x.end()), down = up;
      up[i] += 1e-5, down[i] -= 1e-5;
      EXPECT_NEAR(dx[i], (loss(up) - loss(down)) / 2e-5, 2e-4);
    }
  }
}

TEST(Rotate, EqualsTheReferenceAndTurnsBack) {
  for (const std::size_t half : {1, 3, 8, 16, 20, 32}) {
    const std::size_t d_head = 2 * half + 5, n_heads = 3;
    std::vector<float> cosines(half), sines(half);
    for (std::size_t i = 0; i < half; ++i)
      cosines[i] = std::cos(0.7f * static_cast<float>(i + 1)),
      sines[i] = std::sin(0.7f * static_cast<float>(i + 1));
    const auto x = random_values(n_heads * d_head, 1);
    auto out = x, expected = x;
    rotate(n_heads, d_head, half, cosines.data(), sines.data(), out.data());
    reference::rotate_row(n_heads, d_head, half, cosines.data(), sines.data(), expected.data());
    for (std::size_t i = 0; i < x.size(); ++i) expect_same(out[i], expected[i]);
    EXPECT_NE(out[0], x[0]);
    EXPECT_EQ(out[2 * half], x[2 * half]);  // beyond the rotated part
    rotate_back(n_heads, d_head, half, cosines.data(), sines.data(), out.data());
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(out[i], x[i], 1e-6);
  }
}

std::vector<float> activation_inputs() {
  std::vector<float> x = {0.0f, -0.0f, 1e-30f, -1e-30f, 50.0f, -50.0f, 200.0f, -200.0f, 1e30f, -1e30f};
  for (int i = -10000; i <= 10000; ++i) x.push_back(0.0014f * static_cast<float>(i));
  return x;
}

TEST(GeluTanh, FollowsItsFormula) {
  const std::vector<float> x = activation_inputs();
  std::vector<float> out(x.size()), dx(x.size()), ones(x.size(), 1.0f);
  gelu_tanh(x.size(), x.data(), out.data());
  gelu_tanh_backward(x.size(), x.data(), ones.data(), dx.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = x[i], expected = reference::gelu_tanh(v), step = 1e-5;
    EXPECT_NEAR(out[i], expected, 1e-6 * std::abs(expected) + 1e-6) << x[i];
    if (std::abs(v) < 100.0)
      EXPECT_NEAR(dx[i], (reference::gelu_tanh(v + step) - reference::gelu_tanh(v - step)) / (2 * step), 2e-6)
          << x[i];
    else
      EXPECT_EQ(dx[i], v > 0.0 ? 1.0f : 0.0f) << x[i];
  }
}

TEST(SwiGlu, FollowsItsFormula) {
  const std::vector<float> gate = activation_inputs();
  const std::size_t n = gate.size();
  const auto up = random_values(n, 7), dout = random_values(n, 8);
  std::vector<float> out(n), dgate(n), dup(n);
  swiglu(n, gate.data(), up.data(), out.data());
  swiglu_backward(n, gate.data(), up.data(), dout.data(), dgate.data(), dup.data());
  for (std::size_t i = 0; i < n; ++i) {
    const double g = gate[i], expected = reference::swiglu(g, up[i]), step = 1e-5;
    EXPECT_NEAR(out[i], expected, 1e-6 * std::abs(expected) + 1e-7) << gate[i];
    EXPECT_NEAR(dup[i], dout[i] * reference::silu(g), 1e-6 * std::abs(dout[i] * reference::silu(g)) + 1e-7)
        << gate[i];
    const double slope = std::abs(g) < 100.0
                             ? (reference::silu(g + step) - reference::silu(g - step)) / (2 * step)
                             : (g > 0.0 ? 1.0 : 0.0);
    EXPECT_NEAR(dgate[i], dout[i] * up[i] * slope, 2e-6 * (1.0 + std::abs(dout[i] * up[i]))) << gate[i];
  }
}

TEST(Gelu, FollowsErfToTheLastDigits) {
  std::vector<float> x = {0.0f, -0.0f, 1e-30f, -1e-30f, 50.0f, -50.0f, 1e30f, -1e30f};
  for (int i = -10000; i <= 10000; ++i) x.push_back(0.0014f * static_cast<float>(i));
  std::vector<float> out(x.size()), dx(x.size()), ones(x.size(), 1.0f);
  gelu(x.size(), x.data(), out.data());
  gelu_backward(x.size(), x.data(), ones.data(), dx.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = reference::gelu(x[i]), square = static_cast<double>(x[i]) * x[i];
    // Relative, also in the left tail, where 1 + erf would have no digits left.
    EXPECT_NEAR(out[i], expected, 1e-6 * std::abs(expected) * (1.0 + square / 8) + 1e-37) << x[i];
    EXPECT_NEAR(dx[i], reference::gelu_derivative(x[i]), 1e-6) << x[i];
  }
}

TEST(Softmax, EqualsTheReferenceAndMasks) {
  for (const std::size_t n : kWidths) {
    auto x = random_values(n, 1, 4.0f);
    const auto expected = reference::softmax({x.data(), n}, 0.25);
    softmax(n, 0.25f, x.data());
    for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(x[i], expected[i], 1e-6 * expected[i] + 1e-12);
  }
  std::array<float, 3> masked = {1.0f, -std::numeric_limits<float>::infinity(), 1.0f};
  softmax(3, 1.0f, masked.data());
  EXPECT_EQ(masked, (std::array{0.5f, 0.0f, 0.5f}));
}

TEST(Softmax, BackwardEqualsDifferences) {
  const std::size_t n = 19;
  auto x = random_values(n, 1);
  const auto g = random_values(n, 2);
  auto p = x, dp = g;
  softmax(n, 0.5f, p.data());
  softmax_backward(n, 0.5f, p.data(), dp.data());
  for (std::size_t i = 0; i < n; ++i) {
    double slope = 0;
    for (const double step : {1e-3, -1e-3}) {
      auto moved = x;
      moved[i] += static_cast<float>(step);
      const auto q = reference::softmax({moved.data(), n}, 0.5);
      for (std::size_t j = 0; j < n; ++j) slope += g[j] * q[j] / (2 * step);
    }
    EXPECT_NEAR(dp[i], slope, 1e-4);
  }
}

TEST(GatheredRows, DotsAndSums) {
  const std::size_t n = 7;
  for (const std::size_t d : kWidths)
    for (const std::size_t heads : {1, 3, 4, 9}) {
      const auto rows = random_values(n * d, 1), u = random_values(heads * d, 2),
                 p = random_values(heads * n, 3);
      std::vector<const float*> pointers;
      for (std::size_t j = 0; j < n; ++j) pointers.push_back(rows.data() + (n - 1 - j) * d);
      AlignedVector<float> dots(heads * n), sums(heads * d);
      row_dots(n, pointers.data(), d, heads, {u.data(), d}, {dots.data(), n});
      row_sums(n, pointers.data(), d, heads, {p.data(), n}, {sums.data(), d});
      for (std::size_t h = 0; h < heads; ++h) {
        for (std::size_t j = 0; j < n; ++j)
          expect_same(dots[h * n + j], reference::dot(d, u.data() + h * d, pointers[j]));
        for (std::size_t i = 0; i < d; ++i) {
          float acc = 0.0f;
          for (std::size_t j = 0; j < n; ++j) acc = std::fma(p[h * n + j], pointers[j][i], acc);
          expect_same(sums[h * d + i], acc);
        }
      }
    }
}

// Rows [first, end) of keys and values [kv_heads, n, d], as they are kept.
class KeptRows {
 public:
  KeptRows(const AlignedVector<float>& keys, const AlignedVector<float>& values, std::size_t kv_heads,
           std::size_t n, std::size_t d, std::size_t first, std::size_t end)
      : n_(end - first),
        stride_(round_up(n_, kPanel) * d),
        keys_(kv_heads * stride_ + kKeptPad, 1e30f),
        values_(keys_) {
    for (std::size_t h = 0; h < kv_heads; ++h)
      for (std::size_t j = 0; j < n_; ++j)
        for (std::size_t i = 0; i < d; ++i) {
          const std::size_t from = (h * n + first + j) * d + i;
          keys_[h * stride_ + (j / kPanel * d + i) * kPanel + j % kPanel] = keys[from];
          values_[h * stride_ + j * d + i] = values[from];
        }
  }
  KeptKeys piece() const { return {keys_.data(), values_.data(), n_, stride_}; }

 private:
  std::size_t n_, stride_;
  AlignedVector<float> keys_, values_;
};

AlignedVector<float> plain_weights(std::size_t n, std::size_t d, const float* keys, const float* q,
                                   float scale, KeptShape::Order order) {
  AlignedVector<float> p(n);
  for (std::size_t j = 0; j < n; ++j) {
    float chain = 0.0f;
    for (std::size_t i = 0; i < d; ++i) chain = std::fma(q[i], keys[j * d + i], chain);
    p[j] = order == KeptShape::Order::kChain ? chain : reference::dot(d, q, keys + j * d);
  }
  softmax(n, scale, p.data());
  return p;
}

// Kept keys against rows: each score and each sum has the chain of gemm, or of row_dots and row_sums, to the bit.
TEST(KeptKeys, EqualTheChainsOfOtherKernels) {
  for (const std::size_t d : {4, 8, 24, 64})
    for (const std::size_t groups : {1, 2, 3, 5})
      for (const std::size_t shared : {0, 5, 16})
        for (const std::size_t own : {1, 16, 40}) {
          const std::size_t kv_heads = 3, n_heads = kv_heads * groups, n = shared + own;
          const auto keys = random_values(kv_heads * n * d, 1), values = random_values(kv_heads * n * d, 2);
          const auto q = random_values(n_heads * d, 3);
          const KeptRows kept_shared(keys, values, kv_heads, n, d, 0, shared),
              kept_own(keys, values, kv_heads, n, d, shared, n);
          std::vector<KeptKeys> pieces = {kept_own.piece()};
          if (shared > 0) pieces.insert(pieces.begin(), kept_shared.piece());
          for (const auto order : {KeptShape::Order::kChain, KeptShape::Order::kLanes}) {
            AlignedVector<float> scratch(kept_scratch_size(n_heads, n)), z(n_heads * d + kKeptPad, 7.0f);
            attend_kept({n_heads, groups, d, 0.3f, order}, pieces, q.data(), scratch.data(), z.data());
            for (std::size_t h = 0; h < n_heads; ++h) {
              const float* k = keys.data() + h / groups * n * d;
              const auto p = plain_weights(n, d, k, q.data() + h * d, 0.3f, order);
              for (std::size_t i = 0; i < d; ++i) {
                float acc = 0.0f;
                for (std::size_t j = 0; j < n; ++j)
                  acc = std::fma(p[j], values[h / groups * n * d + j * d + i], acc);
                expect_same(z[h * d + i], acc);
              }
            }
            EXPECT_EQ(z[n_heads * d], 7.0f);
          }
        }
}

TEST(BestOf, SmallestIndexWinsTies) {
  std::vector<float> x(100, -1.0f);
  EXPECT_EQ(best_of(x.size(), x.data()).index, 0u);
  x[37] = x[52] = x[99] = 2.0f;
  EXPECT_EQ(best_of(x.size(), x.data()).index, 37u);
  EXPECT_EQ(best_of(x.size(), x.data()).value, 2.0f);
  EXPECT_EQ(best_of(1, x.data()).index, 0u);
}

}  // namespace
}  // namespace deeptail
