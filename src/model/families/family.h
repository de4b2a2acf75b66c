// A family of models: how its files name and lay out the weights. One file each; the forward pass is the same
// for all.
#pragma once

#include "model/families/tensor_taker.h"
#include "model/weights.h"

namespace deeptail {

// TransformerLens's names: heads apart, [n_heads, d_model, d_head].
ModelWeights transformer_lens_weights(const ModelConfig& config, TensorTaker& tensors);

}  // namespace deeptail
