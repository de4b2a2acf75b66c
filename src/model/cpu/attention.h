// Causal attention of one sequence, all heads: forward and backward.
#pragma once

#include <span>

#include "deeptail/model.h"

namespace deeptail {

// Keys and values of one sequence: positions before `start` from a cache, the others from fresh rows.
// A key row and its value row lie side by side: value = key + d_attn.
struct KeyRows {
  ConstRows cached;  // row p = position p, p < start
  ConstRows fresh;   // row p = position start + p
  std::size_t start = 0, length = 0;
  const float* at(std::size_t position) const {
    return position < start ? cached.row(position) : fresh.row(position - start);
  }
};

class Attention {
 public:
  Attention(const ModelConfig& config, std::size_t max_length);

  // queries: [length - start, d_attn], z likewise. probabilities, when not null, receives
  // [n_heads, length - start, padded()] for the backward pass.
  void forward(ConstRows queries, const KeyRows& keys, Rows z, float* probabilities = nullptr);

  // start must be 0. dqkv: [length, 3 d_attn] is overwritten; qkv: [length, 3 d_attn] of the forward pass.
  void backward(std::size_t length, ConstRows qkv, const float* probabilities, ConstRows dz, Rows dqkv);

  std::size_t padded() const { return padded_; }  // max_length rounded up: stride of a probability row
  std::size_t probabilities_size(std::size_t length) const { return n_heads_ * length * padded_; }

 private:
  void pack_transposed(std::size_t n, std::size_t k, ConstRows rows);  // panels_ = rows^T; rows: [n, k]
  void pack(std::size_t k, std::size_t n, ConstRows rows);             // panels_ = rows; rows: [k, n]
  void product(std::size_t m, ConstRows a, std::size_t k, std::size_t n,
               Rows out);  // out: [m, n] = a panels_

  std::size_t n_heads_, d_head_, d_attn_, padded_;
  float scale_;
  AlignedVector<float> panels_, scores_, transposed_, gathered_;
};

}  // namespace deeptail
