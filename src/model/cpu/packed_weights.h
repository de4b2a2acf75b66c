// The weights as the CPU's products take them.
#pragma once

#include "deeptail/model.h"
#include "model/families/tensor_taker.h"
#include "model/weights.h"

namespace deeptail {

struct PackedBlock {
  LayerNorm ln1 = {}, ln2 = {};
  LayerNorm q_norm = {}, k_norm = {};  // [d_head], where there is a qk_norm
  float scale = 1.0f;                  // of the scores
  PackedMatrix w_qkv = {};  // [d_model, d_attn + 2 d_kv]: queries, keys, values; not in the last block
  PackedMatrix w_o = {};    // [d_attn, d_model]
  PackedMatrix w_in = {};   // [d_model, d_mlp], or gate and in side by side: [d_model, 2 d_mlp]
  PackedMatrix w_out = {};  // [d_mlp, d_model]
  PackedMatrix w_q = {};    // [d_model, d_attn]; last block only
  // Last block only; which of them says keys_are_still().
  std::vector<PackedMatrix> w_k_t = {}, w_v = {};  // per key head [d_head, d_model] and [d_model, d_head]
  PackedMatrix w_kv = {};                          // [d_model, 2 d_kv]
};

struct PackedWeights {
  AlignedVector<float> w_e = {};    // [d_vocab, d_model]; empty where the head is tied and has it
  AlignedVector<float> w_pos = {};  // [n_ctx, d_model]; empty where positions are rotary
  std::vector<PackedBlock> blocks = {};
  Head head = {};

  // W_E[token] into out: [d_model].
  void embedding(TokenId token, float* out) const;
};

// Piece by piece: no more than one of them is held twice. whole: no tensor may be left over.
PackedWeights pack_weights(const ModelConfig& config, TensorTaker& tensors, bool whole = true);

}  // namespace deeptail
