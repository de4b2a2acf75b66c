// One transformer block on rows of many sequences: x <- x + attention(ln1(x)); x <- x + mlp(ln2(x)), or both at
// once (Architecture::Residual).
#pragma once

#include <span>

#include "model/cpu/attention.h"
#include "model/cpu/head_steps.h"
#include "model/cpu/packed_weights.h"
#include "model/cpu/slot.h"

namespace deeptail {

// Rows of the mlp that are worked on together: the hidden layer stays in L2.
inline constexpr std::size_t kMlpRows = 96;

// What the backward pass needs of a block's forward pass. rows: all rows of the batch.
struct BlockTape {
  AlignedVector<float> x_pre, x_mid;    // [rows, d_model] before attention, before the mlp
  AlignedVector<float> stats1, stats2;  // [rows, 2] of ln1, ln2
  AlignedVector<float> qkv;             // [rows, d_attn + 2 d_kv], as attention takes them
  AlignedVector<float> projected;       // the same before their norms, where there are any
  AlignedVector<float> probabilities;   // [segments][n_heads, length, padded]
  AlignedVector<float> hidden;          // [rows, width of w_in] before the activation
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
      : mlp(config.arch.mlp),
        d_model(config.d_model),
        d_mlp(config.d_mlp),
        width(hidden_width(config)),
        normed(kMlpRows * d_model),
        gates(width > d_mlp ? kMlpRows * width : 0),
        hidden(kMlpRows * d_mlp) {}
  static std::size_t hidden_width(const ModelConfig& config) {
    return (config.arch.mlp == Architecture::Mlp::kSwiGlu ? 2 : 1) * config.d_mlp;
  }

  Architecture::Mlp mlp;
  std::size_t d_model, d_mlp, width;
  AlignedVector<float> normed;  // [kMlpRows, d_model]
  AlignedVector<float> gates;   // [kMlpRows, width] before a gated activation
  AlignedVector<float> hidden;  // [kMlpRows, d_mlp] before and after the others

  // Gates, and what they let through, begin with a panel each.
  bool gated_in_parts() const { return mlp == Architecture::Mlp::kSwiGlu && d_mlp % kPanel == 0; }
  float* before() { return gates.empty() ? hidden.data() : gates.data(); }
};

// x: [m, d_model] <- x + W_out act(W_in ln2(x)). With a tape, row i of x is row i of the tape.
void mlp_forward(const PackedBlock& w, std::size_t m, Rows x, MlpScratch& scratch, BlockTape* tape = nullptr);
// dx: [m, d_model], gradient w.r.t. the mlp's output, becomes the one w.r.t. its input.
void mlp_backward(const PackedBlock& w, const BlockTransposed& t, std::size_t m, const BlockTape& tape,
                  Rows dx, MlpScratch& scratch);

// x: [m, d_model] <- x + W_O z + mlp(..), as the residual stream goes. z: [m, d_attn]
void add_outputs(const PackedBlock& w, Architecture::Residual residual, std::size_t m, ConstRows z, Rows x,
                 MlpScratch& scratch, BlockTape* tape = nullptr);

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
  void project(const PackedBlock& w, std::span<const Segment> segments, Rows x, float* stats);
  void first_layer_rows(const PackedBlock& w, const SlotLayout& layout, std::span<const Segment> segments,
                        Rows x, const FirstLayerTable* table, float* stats);
  void keep_keys(std::size_t layer, const SlotLayout& layout, const Segment& segment);

  void attend(const PackedBlock& w, std::size_t layer, const SlotLayout& layout,
              std::span<const Segment> segments, BlockTape* tape);
  void turn(const PackedBlock& w, const Segment& segment, std::size_t i);  // row i of the segment
  void turn_back(const PackedBlock& w, std::span<const Segment> segments, const BlockTape& tape);
  float* qkv_row(std::size_t row) { return qkv_.data() + row * width_; }

  Architecture::Residual residual_;
  std::size_t d_model_, d_attn_;
  std::size_t width_;  // d_attn + 2 d_kv
  HeadSteps steps_;
  Attention attention_;
  MlpScratch mlp_;
  AlignedVector<float> normed_;    // [max_rows, d_model]
  AlignedVector<float> qkv_;       // [max_rows, width_]
  AlignedVector<float> z_;         // [max_rows, d_attn]
  AlignedVector<float> gathered_;  // [max_rows, max(d_model, width_)]
  std::vector<std::size_t> todo_;  // rows that no cache or table has
  std::vector<float> todo_stats_;  // [max_rows, 2]
};

}  // namespace deeptail
