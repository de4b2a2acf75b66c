// A block's weights as the kernels take them (dense.h).
#pragma once

#include "compute_cuda/dense.h"
#include "model/weights.h"

namespace deeptail::cuda {

// What kernels make of a size: the next one that they take, or the size itself where there is none.
std::size_t device_head_size(std::size_t d_head);
std::size_t device_mlp_size(std::size_t d_mlp);

DenseBlock dense_block(const ModelConfig& config, BlockWeights block, bool last);

// w: [rows, columns], row-major -> [columns, rows].
std::vector<float> transposed(const std::vector<float>& w, std::size_t rows, std::size_t columns);

}  // namespace deeptail::cuda
