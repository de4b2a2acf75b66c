// Causal attention of one sequence, all heads: forward and backward.
#pragma once

#include <span>

#include "deeptail/model.h"

namespace deeptail {

// Keys and values of one sequence: the first ones shared with others, those before `start` from a cache, the
// others from fresh rows.
// A key row and its value row lie side by side: value = key + d_kv.
struct KeyRows {
  ConstRows shared;  // row p = position p, p < n_shared
  ConstRows cached;  // row p = position n_shared + p
  ConstRows fresh;   // row p = position start + p
  std::size_t n_shared = 0, start = 0, length = 0;
  const float* at(std::size_t position) const {
    if (position < n_shared) return shared.row(position);
    return position < start ? cached.row(position - n_shared) : fresh.row(position - start);
  }
};

class Attention {
 public:
  Attention(const ModelConfig& config, std::size_t max_length);

  // queries: [length - start, d_attn], z likewise; scale: of the scores. probabilities, when not null,
  // receives [n_heads, length - start, padded()] for the backward pass.
  void forward(ConstRows queries, const KeyRows& keys, float scale, Rows z, float* probabilities = nullptr);

  // start must be 0. dqkv: [length, d_attn + 2 d_kv] is overwritten; qkv likewise, of the forward pass.
  void backward(std::size_t length, ConstRows qkv, float scale, const float* probabilities, ConstRows dz,
                Rows dqkv);

  std::size_t padded() const { return padded_; }  // max_length rounded up: stride of a probability row
  std::size_t probabilities_size(std::size_t length) const { return n_heads_ * length * padded_; }

 private:
  using Panels = AlignedVector<float>;
  void pack_transposed(std::size_t n, std::size_t k, ConstRows rows, Panels& out);  // rows^T; rows: [n, k]
  void pack(std::size_t k, std::size_t n, ConstRows rows, Panels& out);             // rows: [k, n]
  // out: [m, n] = a panels_
  void product(std::size_t m, ConstRows a, std::size_t k, std::size_t n, Rows out);
  void gather(const KeyRows& keys, std::size_t offset);
  void head_forward(ConstRows queries, const KeyRows& keys, float scale, Rows scores, Rows z);
  void add_heads(std::size_t n, std::size_t offset, bool first, Rows dqkv);

  std::size_t n_heads_, kv_groups_, d_head_, d_attn_, d_kv_, padded_;
  Panels panels_, value_panels_;
  AlignedVector<float> scores_, transposed_, gathered_;
};

}  // namespace deeptail
