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

// Their columns in one matrix; all have the same rows, and all have a bias or none has.
Matrix side_by_side(std::initializer_list<const Matrix*> parts);

struct NormWeights {
  std::vector<float> w = {}, b = {};  // [d_model]
};

struct BlockWeights {
  NormWeights ln1 = {}, ln2 = {};
  Matrix w_q = {}, w_k = {}, w_v = {};  // [d_model, d_attn], heads side by side
  Matrix w_o = {};                      // [d_attn, d_model]
  Matrix w_in = {}, w_out = {};         // [d_model, d_mlp], [d_mlp, d_model]
};

struct ModelWeights {
  std::vector<float> w_e = {}, w_pos = {};  // [d_vocab, d_model], [n_ctx, d_model]
  std::vector<BlockWeights> blocks = {};
  NormWeights ln_final = {};
  Matrix w_u = {};  // [d_model, d_vocab]
};

}  // namespace deeptail
