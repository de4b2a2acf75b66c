// Weights in the layouts that PyTorch's modules have.
#pragma once

#include "model/families/tensor_taker.h"
#include "model/weights.h"

namespace deeptail {

// nn.Linear: weight [out, in] becomes [in, out].
struct LinearShape {
  std::size_t in, out;
  bool bias;
};
Matrix take_linear(TensorTaker& tensors, const std::string& name, LinearShape shape);
// GPT-2's Conv1D: weight [in, out] as it stands.
Matrix take_conv1d(TensorTaker& tensors, const std::string& name, std::size_t in, std::size_t out);
// Columns [first, first + n) of m, with their biases.
Matrix take_columns(const Matrix& m, std::size_t first, std::size_t n);

NormWeights take_layer_norm(TensorTaker& tensors, const std::string& name, std::size_t d);  // .weight, .bias
NormWeights take_rms_norm(TensorTaker& tensors, const std::string& name, std::size_t d);    // .weight

// "transformer." or "": files of the whole model have it, files of its trunk alone have not.
std::string prefix_of(const TensorTaker& tensors, const std::string& prefix, const std::string& probe);

// The unembedding under one of these names; w_u.w stays empty where the head is tied. A tied head that is
// stored as well must equal W_E: what the config says and what the file says would differ.
Matrix take_head(TensorTaker& tensors, std::initializer_list<const char*> names, const ModelConfig& config,
                 const std::vector<float>& w_e);

}  // namespace deeptail
