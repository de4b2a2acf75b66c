// The forward engine's steps in plain loops, on the arrays that it is given and with the functions that its
// kernels call: what a device must compute. Sums are double; factors of products are rounded as the device
// rounds them where asked.
#pragma once

#include <cuda_fp16.h>

#include <cmath>
#include <span>
#include <vector>

#include "compute_cuda/dense.h"
#include "compute_cuda/exact/head_and_gates.h"

namespace deeptail::cuda {

class DenseForward {
 public:
  using Row = std::vector<float>;

  explicit DenseForward(const DenseModel& model, bool twofold = false) : m_(model), twofold_(twofold) {}

  Row logits(std::span<const std::int32_t> tokens) const {
    std::vector<Row> x;
    for (std::size_t t = 0; t < tokens.size(); ++t) x.push_back(embedding(tokens[t], t));
    for (std::size_t layer = 0; layer < m_.n_layers; ++layer) block(layer, x);
    return times(norm(x.back(), m_.ln_final_w, m_.ln_final_b), m_.w_u, m_.b_u);
  }
  float largest_factor() const { return largest_; }  // of all products so far; fp16 ends at 65504

 private:
  Row embedding(std::int32_t token, std::size_t t) const {
    Row x(m_.d_model);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = m_.w_e[static_cast<std::size_t>(token) * x.size() + i];
      if (!m_.w_pos.empty()) x[i] += m_.w_pos[t * x.size() + i];
    }
    return x;
  }

  // As a product takes it: a high and a low part in fp16.
  float rounded(float x) const {
    if (!twofold_) return x;
    const float high = __half2float(__float2half_rn(x));
    return high + __half2float(__float2half_rn(x - high));
  }
  Row times(const Row& x, const std::vector<float>& w, const std::vector<float>& b) const {
    std::vector<double> sum(b.begin(), b.end());
    for (std::size_t i = 0; i < x.size(); ++i) {
      largest_ = std::max(largest_, std::abs(x[i]));
      const double factor = rounded(x[i]);
      for (std::size_t j = 0; j < b.size(); ++j) sum[j] += factor * rounded(w[i * b.size() + j]);
    }
    return {sum.begin(), sum.end()};
  }

  Row norm(const Row& x, const std::vector<float>& w, const std::vector<float>& b) const {
    const double n = static_cast<double>(x.size());
    double mean = 0.0, squares = 0.0;
    if (m_.arch.norm == Architecture::Norm::kLayer)
      for (const float v : x) mean += v / n;
    for (const float v : x) squares += (v - mean) * (v - mean) / n;
    Row out(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      out[i] = static_cast<float>((x[i] - mean) / std::sqrt(squares + m_.eps) * w[i] + b[i]);
    return out;
  }

  void finish_heads(std::size_t t, const DenseBlock& b, Row& qkv) const {
    constexpr int kLanes = 8;
    std::vector<float> c, s;
    for (const double f : m_.arch.frequencies) {
      c.push_back(static_cast<float>(std::cos(static_cast<double>(t) * f)));
      s.push_back(static_cast<float>(std::sin(static_cast<double>(t) * f)));
    }
    for (std::size_t h = 0; h < m_.n_heads + m_.n_kv_heads(); ++h) {
      const std::vector<float>& norm = h < m_.n_heads ? b.q_norm : b.k_norm;
      const HeadStep step{static_cast<int>(m_.d_head),      static_cast<int>(m_.head_values),
                          static_cast<int>(c.size()),       c.data(), s.data(),
                          norm.empty() ? nullptr : norm.data(), m_.eps};
      float* head = qkv.data() + h * m_.d_head;
      float sum = 0.0f;
      for (int lane = 0; lane < kLanes; ++lane) sum += step.squares(head, lane, kLanes);
      for (int lane = 0; lane < kLanes; ++lane) step.finish(head, sum, lane, kLanes);
    }
  }

  Row attend(std::size_t layer, const std::vector<Row>& qkv, std::size_t t) const {
    const std::size_t d = m_.d_head;
    Row z(m_.d_attn());
    for (std::size_t h = 0; h < m_.n_heads; ++h) {
      const std::size_t kv = h * m_.n_kv_heads() / m_.n_heads;
      const std::size_t key = (m_.n_heads + kv) * d, value = key + m_.n_kv_heads() * d;
      std::vector<double> p(t + 1);
      double top = -INFINITY, total = 0.0;
      for (std::size_t j = 0; j <= t; ++j) {
        for (std::size_t i = 0; i < d; ++i)
          p[j] += static_cast<double>(qkv[t][h * d + i]) * qkv[j][key + i] * m_.scale[layer];
        top = std::max(top, p[j]);
      }
      for (double& v : p) total += v = std::exp(v - top);
      for (std::size_t i = 0; i < d; ++i) {
        double sum = 0.0;
        for (std::size_t j = 0; j <= t; ++j) sum += p[j] * qkv[j][value + i];
        z[h * d + i] = static_cast<float>(sum / total);
      }
    }
    return z;
  }

  Row mlp(const DenseBlock& b, const Row& y) const {
    const Row in = times(y, b.w_in, b.b_in);
    Row hidden(m_.d_mlp);
    for (std::size_t i = 0; i < hidden.size(); ++i) {
      if (m_.arch.mlp == Architecture::Mlp::kSwiGlu)
        hidden[i] = swiglu_fp32(in[2 * i], in[2 * i + 1]);
      else if (m_.arch.mlp == Architecture::Mlp::kGeluTanh)
        hidden[i] = gelu_tanh_fp32(in[i]);
      else
        hidden[i] = 0.5f * in[i] * std::erfc(-in[i] / std::sqrt(2.0f));
    }
    return times(hidden, b.w_out, b.b_out);
  }

  void block(std::size_t layer, std::vector<Row>& x) const {
    const DenseBlock& b = m_.blocks[layer];
    std::vector<Row> qkv;
    for (std::size_t t = 0; t < x.size(); ++t) {
      qkv.push_back(times(norm(x[t], b.ln1_w, b.ln1_b), b.w_qkv, b.b_qkv));
      finish_heads(t, b, qkv[t]);
    }
    const bool parallel = m_.arch.residual == Architecture::Residual::kParallel;
    for (std::size_t t = layer + 1 == m_.n_layers ? x.size() - 1 : 0; t < x.size(); ++t) {
      const Row before = x[t];
      add(times(attend(layer, qkv, t), b.w_o, b.b_o), x[t]);
      add(mlp(b, norm(parallel ? before : x[t], b.ln2_w, b.ln2_b)), x[t]);
    }
  }

  static void add(const Row& from, Row& to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  }

  const DenseModel& m_;
  bool twofold_;
  mutable float largest_ = 0.0f;
};

}  // namespace deeptail::cuda
