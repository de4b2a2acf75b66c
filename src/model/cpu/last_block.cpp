#include "model/cpu/last_block.h"

#include <algorithm>

namespace deeptail {

LastTape::LastTape(const ModelConfig& c, std::size_t m, std::size_t n)
    : mlp(c, m, 0, 0),
      u(c.arch.keys_are_still() ? m * c.n_heads * c.d_model : 2 * m * c.d_attn()),
      p(m * c.n_heads * n) {}

LastBlock::LastBlock(const ModelConfig& c, std::size_t max_sequences, std::size_t max_length)
    : residual_(c.arch.residual),
      still_(c.arch.keys_are_still()),
      n_heads_(c.n_heads),
      kv_groups_(c.arch.kv_groups),
      d_head_(c.d_head),
      d_attn_(c.d_attn()),
      d_kv_(c.d_kv()),
      d_model_(c.d_model),
      steps_(c, max_length),
      mlp_(c),
      query_(max_sequences * c.d_model),
      q_(max_sequences * c.d_attn()),
      z_(max_sequences * c.d_attn()),
      p_(c.n_heads * max_length) {
  if (still_) {
    u_.resize(max_sequences * c.n_heads * c.d_model);
    c_.resize(u_.size());
    mix_.resize(max_length * 2 * c.n_heads);
    panel_.resize(2 * c.n_heads * kPanel);
  } else {
    dkv_.resize(max_length * 2 * c.d_kv());
    parts_.resize(max_length);
  }
}

ConstRows LastBlock::head(const AlignedVector<float>& rows, std::size_t h) const {
  return {rows.data() + h * d_model_, n_heads_ * d_model_};
}
Rows LastBlock::head(AlignedVector<float>& rows, std::size_t h) const {
  return {rows.data() + h * d_model_, n_heads_ * d_model_};
}

const float* const* LastBlock::part(std::size_t n, const float* const* rows, std::size_t offset) {
  for (std::size_t j = 0; j < n; ++j) parts_[j] = rows[j] + offset;
  return parts_.data();
}

void LastBlock::project(const PackedBlock& w, std::size_t n, ConstRows y, Rows kv) const {
  gemm(n, y, w.w_kv, kv);
}
void LastBlock::turn(const PackedBlock& w, std::size_t n, std::size_t position, Rows kv) const {
  for (std::size_t j = 0; j < n; ++j) steps_.keys(w, position + j, kv.row(j));
}

void LastBlock::attend_carried(const PackedBlock& w, const LastInputs& in, LastTape* tape) {
  const std::size_t m = in.m;
  for (std::size_t i = 0; i < m; ++i)
    std::copy_n(in.rows(i)[in.length(i) - 1], d_model_, query_.data() + i * d_model_);
  gemm(m, {query_.data(), d_model_}, w.w_q, {q_.data(), d_attn_});
  for (std::size_t h = 0; h < n_heads_; ++h)
    gemm(m, {q_.data() + h * d_head_, d_attn_}, w.w_k_t[h / kv_groups_], head(u_, h));

  for (std::size_t i = 0; i < m; ++i) {
    const std::size_t at = i * n_heads_ * d_model_, n = in.length(i);
    float* p = tape != nullptr ? tape->p.data() + i * n_heads_ * n : p_.data();
    row_dots(n, in.rows(i), d_model_, n_heads_, {u_.data() + at, d_model_}, {p, n});
    for (std::size_t h = 0; h < n_heads_; ++h) softmax(n, w.scale, p + h * n);
    row_sums(n, in.rows(i), d_model_, n_heads_, {p, n}, {c_.data() + at, d_model_});
  }
  if (tape != nullptr) std::copy_n(u_.data(), m * n_heads_ * d_model_, tape->u.data());

  for (std::size_t h = 0; h < n_heads_; ++h)
    gemm(m, head(c_, h), w.w_v[h / kv_groups_], {z_.data() + h * d_head_, d_attn_});
}

void LastBlock::attend_keys(const PackedBlock& w, const LastInputs& in, ConstRows x, LastTape* tape) {
  layernorm(in.m, x, w.ln1, {query_.data(), d_model_});
  gemm(in.m, {query_.data(), d_model_}, w.w_q, {q_.data(), d_attn_});
  if (tape != nullptr) std::copy_n(q_.data(), in.m * d_attn_, tape->u.data() + in.m * d_attn_);
  for (std::size_t i = 0; i < in.m; ++i) steps_.queries(w, in.length(i) - 1, q_.data() + i * d_attn_);
  if (tape != nullptr) std::copy_n(q_.data(), in.m * d_attn_, tape->u.data());

  for (std::size_t i = 0; i < in.m; ++i) {
    const std::size_t n = in.length(i);
    float* p = tape != nullptr ? tape->p.data() + i * n_heads_ * n : p_.data();
    for (std::size_t h = 0; h < n_heads_; h += kv_groups_) {
      const std::size_t key = h / kv_groups_ * d_head_, at = i * d_attn_ + h * d_head_;
      row_dots(n, part(n, in.rows(i), key), d_head_, kv_groups_, {q_.data() + at, d_head_}, {p + h * n, n});
      for (std::size_t g = h; g < h + kv_groups_; ++g) softmax(n, w.scale, p + g * n);
      row_sums(n, part(n, in.rows(i), d_kv_ + key), d_head_, kv_groups_, {p + h * n, n},
               {z_.data() + at, d_head_});
    }
  }
}

void LastBlock::forward(const PackedBlock& w, const LastInputs& in, Rows x, LastTape* tape) {
  if (still_)
    attend_carried(w, in, tape);
  else
    attend_keys(w, in, x, tape);
  add_outputs(w, residual_, in.m, {z_.data(), d_attn_}, x, mlp_, tape != nullptr ? &tape->mlp : nullptr);
}

// dy of sequence i, given dc in c_: dy_j = sum over heads of p_j dc + ds_j u, and du = sum over j of ds_j y_j
// into u_.
void LastBlock::carried_rows_backward(const PackedBlock& w, std::size_t i, const LastInputs& in,
                                      const LastTape& tape, Rows dy) {
  const std::size_t n = in.n, at = i * n_heads_ * d_model_, depth = 2 * n_heads_;
  const float* const* y = in.rows(i);
  const float* p = tape.p.data() + i * n_heads_ * n;
  row_dots(n, y, d_model_, n_heads_, {c_.data() + at, d_model_}, {p_.data(), n});  // dp
  for (std::size_t h = 0; h < n_heads_; ++h) softmax_backward(n, w.scale, p + h * n, p_.data() + h * n);
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

void LastBlock::carried_backward(const PackedBlock& w, const LastTransposed& t, const LastInputs& in,
                                 const LastTape& tape, Rows dy) {
  for (std::size_t h = 0; h < n_heads_; ++h)
    gemm(in.m, {z_.data() + h * d_head_, d_attn_}, t.w_v_t[h / kv_groups_], head(c_, h));
  for (std::size_t i = 0; i < in.m; ++i) carried_rows_backward(w, i, in, tape, dy.from(i * in.n));
  for (std::size_t h = 0; h < n_heads_; ++h)
    gemm(in.m, head(u_, h), t.w_k[h / kv_groups_], {q_.data() + h * d_head_, d_attn_});
}

// Of sequence i, given dz: dkv_ of its rows as projected, and dq into q_.
void LastBlock::key_rows_backward(const PackedBlock& w, std::size_t i, const LastInputs& in,
                                  const LastTape& tape, ConstRows projected) {
  const std::size_t n = in.n, width = 2 * d_kv_;
  const float* p = tape.p.data() + i * n_heads_ * n;
  const float *q = tape.u.data() + i * d_attn_, *dz = z_.data() + i * d_attn_;
  std::fill(dkv_.begin(), dkv_.end(), 0.0f);
  for (std::size_t h = 0; h < n_heads_; h += kv_groups_) {
    const std::size_t key = h / kv_groups_ * d_head_, at = h * d_head_;
    row_dots(n, part(n, in.rows(i), d_kv_ + key), d_head_, kv_groups_, {dz + at, d_head_},
             {p_.data() + h * n, n});  // dp
    for (std::size_t g = h; g < h + kv_groups_; ++g)
      softmax_backward(n, w.scale, p + g * n, p_.data() + g * n);
    row_sums(n, part(n, in.rows(i), key), d_head_, kv_groups_, {p_.data() + h * n, n},
             {q_.data() + i * d_attn_ + at, d_head_});
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t g = h; g < h + kv_groups_; ++g)
        for (std::size_t k = 0; k < d_head_; ++k) {
          dkv_[j * width + key + k] += p_[g * n + j] * q[g * d_head_ + k];
          dkv_[j * width + d_kv_ + key + k] += p[g * n + j] * dz[g * d_head_ + k];
        }
  }
  for (std::size_t j = 0; j < n; ++j)
    steps_.keys_backward(w, j, projected.data == nullptr ? nullptr : projected.row(i * n + j),
                         dkv_.data() + j * width);
}

void LastBlock::keys_backward(const PackedBlock& w, const LastTransposed& t, const LastInputs& in,
                              const LastTape& tape, Rows dy, ConstRows projected) {
  for (std::size_t i = 0; i < in.m; ++i) {
    key_rows_backward(w, i, in, tape, projected);
    gemm(in.n, {dkv_.data(), 2 * d_kv_}, t.w_kv, dy.from(i * in.n));
    steps_.queries_backward(w, in.n - 1, tape.u.data() + (in.m + i) * d_attn_, q_.data() + i * d_attn_);
  }
}

void LastBlock::backward(const PackedBlock& w, const LastTransposed& t, const LastInputs& in,
                         const LastTape& tape, Rows dx, Rows dy, ConstRows projected) {
  const std::size_t m = in.m, n = in.n;
  if (residual_ == Architecture::Residual::kSequential) mlp_backward(w, t.block, m, tape.mlp, dx, mlp_);
  gemm(m, dx, t.block.w_o, {z_.data(), d_attn_});  // dz
  if (residual_ == Architecture::Residual::kParallel) mlp_backward(w, t.block, m, tape.mlp, dx, mlp_);
  if (still_)
    carried_backward(w, t, in, tape, dy);
  else
    keys_backward(w, t, in, tape, dy, projected);
  gemm(m, {q_.data(), d_attn_}, t.w_q, {query_.data(), d_model_});
  for (std::size_t i = 0; i < m; ++i) {
    float* last = dy.row(i * n + n - 1);
    for (std::size_t k = 0; k < d_model_; ++k) last[k] += query_[i * d_model_ + k];
  }
}

}  // namespace deeptail
