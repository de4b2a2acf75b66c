#include "model/cpu/head_steps.h"

#include <algorithm>
#include <cmath>

namespace deeptail {

HeadSteps::HeadSteps(const ModelConfig& c, std::size_t max_length)
    : qk_norm_(c.arch.qk_norm),
      n_heads_(c.n_heads),
      n_kv_heads_(c.n_kv_heads()),
      d_head_(c.d_head),
      half_(c.arch.frequencies.size()) {
  cosines_.resize(max_length * half_);
  sines_.resize(max_length * half_);
  for (std::size_t t = 0; t < max_length; ++t)
    for (std::size_t i = 0; i < half_; ++i) {
      const double angle = static_cast<double>(t) * c.arch.frequencies[i];
      cosines_[t * half_ + i] = static_cast<float>(std::cos(angle));
      sines_[t * half_ + i] = static_cast<float>(std::sin(angle));
    }
  if (!qk_norm_) return;
  normed_.resize(c.d_attn());
  grad_.resize(c.d_attn());
  stats_.resize(2 * n_heads_);
}

void HeadSteps::forward(const LayerNorm& norm, std::size_t n_heads, std::size_t position, float* row) const {
  if (qk_norm_) layernorm(n_heads, {row, d_head_}, norm, {row, d_head_});
  if (half_ > 0)
    rotate(n_heads, d_head_, half_, cosines_.data() + position * half_, sines_.data() + position * half_,
           row);
}

void HeadSteps::backward(const LayerNorm& norm, std::size_t n_heads, std::size_t position,
                         const float* before, float* row) {
  if (half_ > 0)
    rotate_back(n_heads, d_head_, half_, cosines_.data() + position * half_, sines_.data() + position * half_,
                row);
  if (!qk_norm_) return;
  layernorm(n_heads, {before, d_head_}, norm, {normed_.data(), d_head_}, stats_.data());
  std::fill_n(grad_.data(), n_heads * d_head_, 0.0f);
  layernorm_backward(n_heads, {before, d_head_}, stats_.data(), norm, {row, d_head_},
                     {grad_.data(), d_head_});
  std::copy_n(grad_.data(), n_heads * d_head_, row);
}

void HeadSteps::queries(const PackedBlock& w, std::size_t position, float* q) const {
  forward(w.q_norm, n_heads_, position, q);
}
void HeadSteps::keys(const PackedBlock& w, std::size_t position, float* k) const {
  forward(w.k_norm, n_kv_heads_, position, k);
}
void HeadSteps::queries_backward(const PackedBlock& w, std::size_t position, const float* before, float* dq) {
  backward(w.q_norm, n_heads_, position, before, dq);
}
void HeadSteps::keys_backward(const PackedBlock& w, std::size_t position, const float* before, float* dk) {
  backward(w.k_norm, n_kv_heads_, position, before, dk);
}

}  // namespace deeptail
