// One worker's way through all blocks: a group of segments in, residuals of their last positions out.
#pragma once

#include <optional>

#include "model/cpu/block.h"
#include "model/cpu/last_block.h"

namespace deeptail {

// Sequences that go through the last block together. Results do not depend on it.
std::size_t group_size(const ModelConfig& config, const SlotLayout& layout);

class Pass {
 public:
  Pass(const Transformer& model, const SlotLayout& layout, std::size_t group);

  // segments: at most `group`, none longer than the layout. Sets their first_row and, where it is null,
  // their fresh slot. out: [segments.size(), d_model].
  void run(std::span<Segment> segments, const FirstLayerTable* table, Rows out);

 private:
  void full_blocks(std::span<Segment> segments, const FirstLayerTable* table);
  void embed(const Segment& segment);
  // The last block's rows of segments whose input x_ has: ln1, or keys and values.
  void keep_last_rows(std::span<const Segment> segments);
  // Rows that stand alone (SlotLayout): from the table, the unchanged slot, or computed.
  const float* single_layer_row(const Segment& segment, std::size_t position, const FirstLayerTable* table);

  const Transformer& model_;
  const SlotLayout& layout_;
  std::size_t max_rows_;
  std::optional<FullBlock> block_;
  LastBlock last_;
  AlignedVector<float> x_;               // [max_rows, d_model]
  AlignedVector<float> y_, kv_;          // [max_rows, d_model], [max_rows, 2 d_kv]; keys that turn
  AlignedVector<float> fresh_;           // [group][layout.size()]
  std::vector<const float*> last_rows_;  // [group, length]
  std::vector<std::size_t> lengths_;     // [group]
};

// Of models whose rows do not stand alone.
SharedPrefix compute_prefix(const Transformer& model, std::span<const TokenId> tokens);

// W_E[token] (+ W_pos[position]) into out: [d_model].
void embed_token(const Transformer& model, TokenId token, std::size_t position, float* out);

}  // namespace deeptail
