#include "estimators/cloud.h"

#include <algorithm>

namespace deeptail {

Cloud make_cloud(const Head& head, const Activations& activations, ThreadPool& pool) {
  check_activations(activations, head.d_model(), "activations");
  constexpr std::size_t kBlock = 256;
  Cloud out{.n = activations.n, .d = activations.d_model, .normed = {}, .moments = {}};
  out.normed.resize(out.n * out.d);
  const Rows normed{out.normed.data(), out.d};
  pool.for_each_block((out.n + kBlock - 1) / kBlock, [&](std::size_t block, std::size_t) {
    const std::size_t first = block * kBlock;
    head.normalise(std::min(kBlock, out.n - first), activations.rows().from(first), normed.from(first));
  });
  out.moments = moments(out.n, out.d, out.rows(), pool);
  return out;
}

HalfSpaces winning_region(const Head& head, const Whitening& w, TokenId t, const Target& target,
                          ThreadPool& pool) {
  const std::size_t d = w.d;
  const auto t_column = static_cast<std::size_t>(t);
  std::vector<std::size_t> others;
  for (std::size_t k = 0; k < head.d_vocab(); ++k)
    if (!target.contains(static_cast<TokenId>(k))) others.push_back(k);
  HalfSpaces out{others.size(), d, std::vector<double>(others.size() * d),
                 std::vector<double>(others.size())};
  constexpr std::size_t kBlock = 64;
  pool.for_each_block((others.size() + kBlock - 1) / kBlock, [&](std::size_t block, std::size_t) {
    std::vector<double> difference(d);
    for (std::size_t row = block * kBlock; row < std::min(others.size(), (block + 1) * kBlock); ++row) {
      const std::size_t k = others[row];
      double offset = static_cast<double>(head.w_u.bias()[t_column]) - head.w_u.bias()[k];
      for (std::size_t i = 0; i < d; ++i) {
        difference[i] = static_cast<double>(head.w_u.at(i, t_column)) - head.w_u.at(i, k);
        offset += difference[i] * w.mean[i];
      }
      double* normal = out.normals.data() + row * d;  // L^T difference
      for (std::size_t i = 0; i < d; ++i)
        for (std::size_t j = 0; j <= i; ++j) normal[j] += difference[i] * w.l[i * d + j];
      out.offsets[row] = offset;
    }
  });
  return out;
}

std::vector<double> times_l(const Whitening& w, std::span<const double> u) {
  std::vector<double> x(w.d, 0.0);
  for (std::size_t i = 0; i < w.d; ++i)
    for (std::size_t j = 0; j <= i; ++j) x[i] += w.l[i * w.d + j] * u[j];
  return x;
}

std::vector<double> logit_slopes(const Head& head, std::span<const double> x) {
  std::vector<double> slopes(head.d_vocab(), 0.0);
  for (std::size_t k = 0; k < head.d_vocab(); ++k)
    for (std::size_t i = 0; i < x.size(); ++i) slopes[k] += x[i] * head.w_u.at(i, k);
  return slopes;
}

}  // namespace deeptail
