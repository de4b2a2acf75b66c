// The weights of a transformer, as read and laid out for the products. Raw: nothing is folded into anything.
#pragma once

#include "deeptail/model.h"

namespace deeptail {

struct BlockWeights {
  LayerNorm ln1, ln2;
  PackedMatrix w_qkv;                    // [d_model, 3 d_attn]: queries, keys, values, heads side by side
  PackedMatrix w_o;                      // [d_attn, d_model]
  PackedMatrix w_in, w_out;              // [d_model, d_mlp], [d_mlp, d_model]
  PackedMatrix w_q;                      // [d_model, d_attn]; last block only
  std::vector<PackedMatrix> w_k_t, w_v;  // per head [d_head, d_model] and [d_model, d_head]; last block only
};

struct Weights {
  AlignedVector<float> w_e;    // [d_vocab, d_model]
  AlignedVector<float> w_pos;  // [n_ctx, d_model]
  std::vector<BlockWeights> blocks;
  Head head;
};

// Throws InputError for a missing, extra or misshapen tensor, and for values that are not finite.
Weights make_weights(const ModelConfig& config, const TensorMap& tensors, const std::string& where);

}  // namespace deeptail
