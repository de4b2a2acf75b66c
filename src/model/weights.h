// The weights of a model as they are: dense, fp32, nothing dropped, nothing folded into anything. Every
// family's files become this, and every backend lays out its own form from it.
#pragma once

#include <initializer_list>
#include <vector>

#include "deeptail/model.h"

namespace deeptail {

// [in, out], row-major.
struct Matrix {
  std::size_t in = 0, out = 0;
  std::vector<float> w = {};
  std::vector<float> b = {};  // [out], or empty: none
};

// Their columns in one matrix; all have the same rows. Where some have a bias, the others' is zero.
Matrix side_by_side(std::initializer_list<const Matrix*> parts);

struct NormWeights {
  std::vector<float> w = {};  // [d_model]; of q_norm and k_norm [d_head]
  std::vector<float> b = {};  // the same, or empty: none
};

struct BlockWeights {
  NormWeights ln1 = {}, ln2 = {};
  NormWeights q_norm = {}, k_norm = {};  // where Architecture::qk_norm
  Matrix w_q = {};                       // [d_model, d_attn], heads side by side
  Matrix w_k = {}, w_v = {};             // [d_model, d_kv]
  Matrix w_o = {};                       // [d_attn, d_model]
  Matrix w_gate = {};                    // [d_model, d_mlp], where the mlp is kSwiGlu
  Matrix w_in = {}, w_out = {};          // [d_model, d_mlp], [d_mlp, d_model]
};

// All but the blocks.
struct EndWeights {
  std::vector<float> w_e = {};    // [d_vocab, d_model]
  std::vector<float> w_pos = {};  // [n_ctx, d_model], or empty: positions are rotary
  NormWeights ln_final = {};
  Matrix w_u = {};  // [d_model, d_vocab]; its w is empty where the head is tied: W_E transposed
};

struct ModelWeights : EndWeights {
  std::vector<BlockWeights> blocks = {};
};

}  // namespace deeptail
