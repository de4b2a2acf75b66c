// The weights as the CPU's products take them.
#pragma once

#include "deeptail/model.h"
#include "model/weights.h"

namespace deeptail {

struct PackedBlock {
  LayerNorm ln1, ln2;
  PackedMatrix w_qkv;                    // [d_model, 3 d_attn]: queries, keys, values; not in the last block
  PackedMatrix w_o;                      // [d_attn, d_model]
  PackedMatrix w_in, w_out;              // [d_model, d_mlp], [d_mlp, d_model]
  PackedMatrix w_q;                      // [d_model, d_attn]; last block only
  std::vector<PackedMatrix> w_k_t, w_v;  // per head [d_head, d_model] and [d_model, d_head]; last block only
};

struct PackedWeights {
  AlignedVector<float> w_e;    // [d_vocab, d_model]
  AlignedVector<float> w_pos;  // [n_ctx, d_model]
  std::vector<PackedBlock> blocks;
  Head head;
};

PackedWeights pack_weights(const ModelConfig& config, const ModelWeights& weights);

}  // namespace deeptail
