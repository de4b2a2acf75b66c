// One worker's way through all blocks for texts that grow: single positions of many texts in, residuals of those that
// are asked for out. The bits are those of a pass over whole texts (pass.h).
#pragma once

#include <optional>

#include "model/cpu/block.h"
#include "model/cpu/kept_layout.h"
#include "model/cpu/last_block.h"

namespace deeptail {

// A position of a text, whose earlier ones its slot holds, or are rows before it in the same pass.
struct StepRow {
  TokenId token = 0;
  std::size_t position = 0;
  float* slot = nullptr;
  bool wanted = false;  // its residual is asked for
};

class StepPass {
 public:
  // At most max_rows rows, of which max_wanted are wanted, at positions before max_length. prefix: null for none.
  StepPass(const Transformer& model, const KeptLayout& layout, const KeptPrefix* prefix,
           std::size_t max_length, std::size_t max_rows, std::size_t max_wanted);

  // out: [wanted rows, d_model], in their order.
  void run(std::span<const StepRow> rows, Rows out);

 private:
  void full_block(std::size_t layer, std::span<const StepRow> rows);
  void last_block(std::span<const StepRow> rows, Rows out);
  void last_carried(std::span<const StepRow> rows, Rows out);
  void last_keys(std::span<const StepRow> rows, Rows out);
  // q: [d_attn] of the row, turned -> z: [d_attn].
  void attend(const StepRow& row, std::size_t layer, KeptShape::Order order, const float* q, float* z);

  const Transformer& model_;
  const KeptLayout& layout_;
  const KeptPrefix* prefix_;
  std::size_t max_length_, width_;  // d_attn + 2 d_kv
  HeadSteps steps_;
  MlpScratch mlp_;
  std::optional<LastBlock> last_;  // where its keys are not formed
  AlignedVector<float> x_, normed_, qkv_, z_,
      p_;  // [max_rows, d_model], the same, [max_rows, width], [max_rows, d_attn]
  std::vector<const float*> last_rows_;  // [max_wanted, max_length], where its keys are not formed
  std::vector<std::size_t> lengths_;     // [max_wanted]
};

KeptPrefix compute_kept_prefix(const Transformer& model, std::span<const TokenId> tokens);

}  // namespace deeptail
