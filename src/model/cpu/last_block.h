// The last block, for the last position of many sequences.
//
// One query per sequence, so keys and values are never formed: with y_j = ln1(x_j), head h and query q_h,
//   score_j  = q_h . (W_K^T y_j + b_K)      = u_h . y_j + const,   u_h = W_K q_h
//   z_h      = sum_j p_j (W_V^T y_j + b_V)  = W_V^T c_h + b_V,     c_h = sum_j p_j y_j
// (the constant cancels in the softmax). Exact algebra, and a factor d_model / (2 n_heads) less work than
// keys and values of every position.
#pragma once

#include "model/cpu/block.h"

namespace deeptail {

struct LastTape {
  BlockTape mlp;           // [m] rows; only its mlp part is used
  AlignedVector<float> u;  // [m, n_heads, d_model]
  AlignedVector<float> p;  // [m, n_heads, n]
};

struct LastTransposed {
  BlockTransposed block;                 // w_o, w_in, w_out
  PackedMatrix w_q;                      // [d_attn, d_model]
  std::vector<PackedMatrix> w_k, w_v_t;  // per head [d_model, d_head], [d_head, d_model]
};

// What it reads of m sequences.
struct LastInputs {
  std::size_t m, n;                      // n: positions of all of them, or of the longest
  const float* const* y;                 // [m, n] pointers to rows [d_model], ln1 of the block's input
  const std::size_t* lengths = nullptr;  // [m]; null: n. The last row of each is the query's
  std::size_t length(std::size_t i) const { return lengths == nullptr ? n : lengths[i]; }
  const float* const* rows(std::size_t i) const { return y + i * n; }
};

class LastBlock {
 public:
  LastBlock(const ModelConfig& config, std::size_t max_sequences, std::size_t max_length);

  // x: [m, d_model], the block's input at the last position, becomes its output. A tape takes sequences of
  // one length.
  void forward(const PackedBlock& w, const LastInputs& in, Rows x, LastTape* tape = nullptr);
  // dx: [m, d_model], gradient w.r.t. the output, becomes the one w.r.t. the input at the last position by
  // way of the residual stream; dy: [m * n, d_model] receives the gradient w.r.t. every row of y.
  void backward(const PackedBlock& w, const LastTransposed& t, std::size_t m, std::size_t n,
                const float* const* y, const LastTape& tape, Rows dx, Rows dy);

 private:
  ConstRows head(const AlignedVector<float>& rows, std::size_t h) const;  // of [m, n_heads, d_model]
  Rows head(AlignedVector<float>& rows, std::size_t h) const;
  void rows_backward(std::size_t i, std::size_t n, const float* const* y, const LastTape& tape, Rows dy);

  std::size_t n_heads_, d_head_, d_attn_, d_model_;
  float scale_;
  MlpScratch mlp_;
  AlignedVector<float> query_;  // [m, d_model]
  AlignedVector<float> q_, z_;  // [m, d_attn]
  AlignedVector<float> u_, c_;  // [m, n_heads, d_model]
  AlignedVector<float> p_;      // [n_heads, n]
  AlignedVector<float> mix_;    // [n, 2 n_heads]
  AlignedVector<float> panel_;  // [2 n_heads][16]
};

}  // namespace deeptail
