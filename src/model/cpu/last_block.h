// The last block, for the last position of many sequences.
//
// One query per sequence. Where keys are still (Architecture), keys and values are never formed: with
// y_j = ln1(x_j), head h and query q_h,
//   score_j  = q_h . (W_K^T y_j + b_K)      = u_h . y_j + const,   u_h = W_K q_h
//   z_h      = sum_j p_j (W_V^T y_j + b_V)  = W_V^T c_h + b_V,     c_h = sum_j p_j y_j
// (the constant cancels in the softmax). Exact algebra, and a factor d_model / (2 n_heads) less work than
// keys and values of every position.
// Keys that turn with their position have another u_h at every position, so that there is nothing to carry:
// then it takes keys and values of every position.
#pragma once

#include "model/cpu/block.h"

namespace deeptail {

struct LastTape {
  BlockTape mlp;           // [m] rows; only its mlp part is used
  AlignedVector<float> u;  // [m, n_heads, d_model]; keys that turn: queries [m, d_attn], then as projected
  AlignedVector<float> p;  // [m, n_heads, n]
  LastTape() = default;
  LastTape(const ModelConfig& config, std::size_t m, std::size_t n);
};

struct LastTransposed {
  BlockTransposed block;                 // w_o, w_in, w_out
  PackedMatrix w_q;                      // [d_attn, d_model]
  std::vector<PackedMatrix> w_k, w_v_t;  // per key head [d_model, d_head], [d_head, d_model]
  PackedMatrix w_kv;                     // [2 d_kv, d_model]
};

// What it reads of m sequences.
struct LastInputs {
  std::size_t m, n;  // n: positions of all of them, or of the longest
  // [m, n] pointers to rows: ln1 of the block's input [d_model], or keys and values [2 d_kv], turned.
  const float* const* y;
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
  // way of the residual stream; dy: [m * n, d_model] receives the gradient w.r.t. ln1 of every row.
  // projected: [m * n, 2 d_kv], the keys before their norms, where they have any.
  void backward(const PackedBlock& w, const LastTransposed& t, const LastInputs& in, const LastTape& tape,
                Rows dx, Rows dy, ConstRows projected = {});

  // Keys that turn: rows from `position` on. y: [n, d_model] = ln1 of the block's input; kv: [n, 2 d_kv].
  // project, then turn in place.
  void project(const PackedBlock& w, std::size_t n, ConstRows y, Rows kv) const;
  void turn(const PackedBlock& w, std::size_t n, std::size_t position, Rows kv) const;

 private:
  ConstRows head(const AlignedVector<float>& rows, std::size_t h) const;  // of [m, n_heads, d_model]
  Rows head(AlignedVector<float>& rows, std::size_t h) const;
  void attend_carried(const PackedBlock& w, const LastInputs& in, LastTape* tape);
  void attend_keys(const PackedBlock& w, const LastInputs& in, ConstRows x, LastTape* tape);
  // The gradient in z_ -> dy.
  void carried_backward(const PackedBlock& w, const LastTransposed& t, const LastInputs& in,
                        const LastTape& tape, Rows dy);
  void keys_backward(const PackedBlock& w, const LastTransposed& t, const LastInputs& in,
                     const LastTape& tape, Rows dy, ConstRows projected);
  void carried_rows_backward(const PackedBlock& w, std::size_t i, const LastInputs& in, const LastTape& tape,
                             Rows dy);
  void key_rows_backward(const PackedBlock& w, std::size_t i, const LastInputs& in, const LastTape& tape,
                         ConstRows projected);
  // Rows of key head g: their keys, or their values.
  const float* const* part(std::size_t n, const float* const* rows, std::size_t offset);

  Architecture::Residual residual_;
  bool still_;
  std::size_t n_heads_, kv_groups_, d_head_, d_attn_, d_kv_, d_model_;
  HeadSteps steps_;
  MlpScratch mlp_;
  AlignedVector<float> query_;       // [m, d_model]
  AlignedVector<float> q_, z_;       // [m, d_attn]
  AlignedVector<float> p_;           // [n_heads, n]
  AlignedVector<float> u_, c_;       // [m, n_heads, d_model]; still keys
  AlignedVector<float> mix_;         // [n, 2 n_heads]; still keys
  AlignedVector<float> panel_;       // [2 n_heads][16]; still keys
  AlignedVector<float> dkv_;         // [n, 2 d_kv]; keys that turn, on the way back
  std::vector<const float*> parts_;  // [n]; keys that turn
};

}  // namespace deeptail
