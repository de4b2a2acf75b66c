#include "model/cpu/last_block.h"

#include <algorithm>
#include <cmath>

namespace deeptail {

LastBlock::LastBlock(const ModelConfig& c, std::size_t max_sequences, std::size_t max_length)
    : n_heads_(c.n_heads),
      d_head_(c.d_head),
      d_attn_(c.d_attn()),
      d_model_(c.d_model),
      scale_(1.0f / std::sqrt(static_cast<float>(c.d_head))),
      mlp_(c),
      query_(max_sequences * c.d_model),
      q_(max_sequences * c.d_attn()),
      z_(max_sequences * c.d_attn()),
      u_(max_sequences * c.n_heads * c.d_model),
      c_(max_sequences * c.n_heads * c.d_model),
      p_(c.n_heads * max_length),
      mix_(max_length * 2 * c.n_heads),
      panel_(2 * c.n_heads * kPanel) {}

ConstRows LastBlock::head(const AlignedVector<float>& rows, std::size_t h) const {
  return {rows.data() + h * d_model_, n_heads_ * d_model_};
}
Rows LastBlock::head(AlignedVector<float>& rows, std::size_t h) const {
  return {rows.data() + h * d_model_, n_heads_ * d_model_};
}

void LastBlock::forward(const PackedBlock& w, const LastInputs& in, Rows x, LastTape* tape) {
  const std::size_t m = in.m;
  for (std::size_t i = 0; i < m; ++i)
    std::copy_n(in.rows(i)[in.length(i) - 1], d_model_, query_.data() + i * d_model_);
  gemm(m, {query_.data(), d_model_}, w.w_q, {q_.data(), d_attn_});
  for (std::size_t h = 0; h < n_heads_; ++h)
    gemm(m, {q_.data() + h * d_head_, d_attn_}, w.w_k_t[h], head(u_, h));

  for (std::size_t i = 0; i < m; ++i) {
    const std::size_t at = i * n_heads_ * d_model_, n = in.length(i);
    float* p = tape != nullptr ? tape->p.data() + i * n_heads_ * n : p_.data();
    row_dots(n, in.rows(i), d_model_, n_heads_, {u_.data() + at, d_model_}, {p, n});
    for (std::size_t h = 0; h < n_heads_; ++h) softmax(n, scale_, p + h * n);
    row_sums(n, in.rows(i), d_model_, n_heads_, {p, n}, {c_.data() + at, d_model_});
  }
  if (tape != nullptr) std::copy_n(u_.data(), m * n_heads_ * d_model_, tape->u.data());

  for (std::size_t h = 0; h < n_heads_; ++h)
    gemm(m, head(c_, h), w.w_v[h], {z_.data() + h * d_head_, d_attn_});
  gemm(m, {z_.data(), d_attn_}, w.w_o, x, GemmMode::kAdd);
  mlp_forward(w, m, x, mlp_, tape != nullptr ? &tape->mlp : nullptr);
}

// dy of sequence i, given dc in c_: dy_j = sum over heads of p_j dc + ds_j u, and du = sum over j of ds_j y_j
// into u_.
void LastBlock::rows_backward(std::size_t i, std::size_t n, const float* const* y, const LastTape& tape,
                              Rows dy) {
  const std::size_t at = i * n_heads_ * d_model_, depth = 2 * n_heads_;
  const float* p = tape.p.data() + i * n_heads_ * n;
  row_dots(n, y, d_model_, n_heads_, {c_.data() + at, d_model_}, {p_.data(), n});  // dp
  for (std::size_t h = 0; h < n_heads_; ++h) softmax_backward(n, scale_, p + h * n, p_.data() + h * n);
  row_sums(n, y, d_model_, n_heads_, {p_.data(), n}, {u_.data() + at, d_model_});
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t h = 0; h < n_heads_; ++h) {
      mix_[j * depth + h] = p[h * n + j];
      mix_[j * depth + n_heads_ + h] = p_[h * n + j];
    }
  for (std::size_t first = 0; first < d_model_; first += kPanel) {
    const std::size_t width = std::min(kPanel, d_model_ - first);
    for (std::size_t h = 0; h < n_heads_; ++h) {
      std::copy_n(c_.data() + at + h * d_model_ + first, width, panel_.data() + h * kPanel);
      std::copy_n(tape.u.data() + at + h * d_model_ + first, width, panel_.data() + (n_heads_ + h) * kPanel);
    }
    gemm_bare_panel(n, {mix_.data(), depth}, depth, panel_.data(), width, {dy.data + first, dy.stride});
  }
}

void LastBlock::backward(const PackedBlock& w, const LastTransposed& t, std::size_t m, std::size_t n,
                         const float* const* y, const LastTape& tape, Rows dx, Rows dy) {
  mlp_backward(w, t.block, m, tape.mlp, dx, mlp_);
  gemm(m, dx, t.block.w_o, {z_.data(), d_attn_});  // dz
  for (std::size_t h = 0; h < n_heads_; ++h)
    gemm(m, {z_.data() + h * d_head_, d_attn_}, t.w_v_t[h], head(c_, h));
  for (std::size_t i = 0; i < m; ++i) rows_backward(i, n, y + i * n, tape, dy.from(i * n));
  for (std::size_t h = 0; h < n_heads_; ++h)
    gemm(m, head(u_, h), t.w_k[h], {q_.data() + h * d_head_, d_attn_});
  gemm(m, {q_.data(), d_attn_}, t.w_q, {query_.data(), d_model_});
  for (std::size_t i = 0; i < m; ++i) {
    float* last = dy.row(i * n + n - 1);
    for (std::size_t k = 0; k < d_model_; ++k) last[k] += query_[i * d_model_ + k];
  }
}

}  // namespace deeptail
