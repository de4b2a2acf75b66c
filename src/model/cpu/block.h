// One transformer block on rows of many sequences: x <- x + attention(ln1(x)); x <- x + mlp(ln2(x)).
#pragma once

#include <span>

#include "model/cpu/attention.h"
#include "model/cpu/packed_weights.h"
#include "model/cpu/slot.h"

namespace deeptail {

// Rows of the mlp that are worked on together: the hidden layer stays in L2.
inline constexpr std::size_t kMlpRows = 96;

// What the backward pass needs of a block's forward pass. rows: all rows of the batch.
struct BlockTape {
  AlignedVector<float> x_pre, x_mid;    // [rows, d_model] before attention, before the mlp
  AlignedVector<float> stats1, stats2;  // [rows, 2] of ln1, ln2
  AlignedVector<float> qkv;             // [rows, 3 d_attn]
  AlignedVector<float> probabilities;   // [segments][n_heads, length, padded]
  AlignedVector<float> hidden;          // [rows, d_mlp] before the gelu
  BlockTape() = default;
  BlockTape(const ModelConfig& config, std::size_t rows, std::size_t n_segments, std::size_t padded);
};

// Weights transposed, for the way back.
struct BlockTransposed {
  PackedMatrix w_qkv, w_o, w_in, w_out;
};

// Scratch of one worker.
class MlpScratch {
 public:
  explicit MlpScratch(const ModelConfig& config)
      : d_model(config.d_model), d_mlp(config.d_mlp), normed(kMlpRows * d_model), hidden(kMlpRows * d_mlp) {}
  std::size_t d_model, d_mlp;
  AlignedVector<float> normed;  // [kMlpRows, d_model]
  AlignedVector<float> hidden;  // [kMlpRows, d_mlp]
};

// x: [m, d_model] <- x + W_out gelu(W_in ln2(x)). With a tape, row i of x is row i of the tape.
void mlp_forward(const PackedBlock& w, std::size_t m, Rows x, MlpScratch& scratch, BlockTape* tape = nullptr);
// dx: [m, d_model], gradient w.r.t. the mlp's output, becomes the one w.r.t. its input.
void mlp_backward(const PackedBlock& w, const BlockTransposed& t, std::size_t m, const BlockTape& tape,
                  Rows dx, MlpScratch& scratch);

class FullBlock {
 public:
  FullBlock(const ModelConfig& config, std::size_t max_rows, std::size_t max_length);

  // x: [rows, d_model] in place. `layer` and `layout` say where keys come from and go to.
  void forward(const PackedBlock& w, std::size_t layer, const SlotLayout& layout,
               std::span<const Segment> segments, Rows x, const FirstLayerTable* table,
               BlockTape* tape = nullptr);
  // dx in place; segments are whole sequences (start 0).
  void backward(const PackedBlock& w, const BlockTransposed& t, std::span<const Segment> segments,
                const BlockTape& tape, Rows dx);

  std::size_t padded() const { return attention_.padded(); }

 private:
  void project(const PackedBlock& w, std::size_t m, Rows x, float* stats);
  void first_layer_rows(const PackedBlock& w, const SlotLayout& layout, std::span<const Segment> segments,
                        Rows x, const FirstLayerTable* table, float* stats);
  void keep_keys(std::size_t layer, const SlotLayout& layout, const Segment& segment);

  std::size_t d_model_, d_attn_;
  Attention attention_;
  MlpScratch mlp_;
  AlignedVector<float> normed_;    // [max_rows, d_model]
  AlignedVector<float> qkv_;       // [max_rows, 3 d_attn]
  AlignedVector<float> z_;         // [max_rows, d_attn]
  AlignedVector<float> gathered_;  // [max_rows, max(d_model, 3 d_attn)]
  std::vector<std::size_t> todo_;  // rows that no cache or table has
  std::vector<float> todo_stats_;  // [max_rows, 2]
};

}  // namespace deeptail
