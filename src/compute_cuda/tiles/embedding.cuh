// Where the residuals of an input begin.
#pragma once

#include <cstddef>
#include <cstdint>

namespace deeptail::cuda {

// Where a row of the input begins: W_E[token] + W_pos[position].
struct Embedding {
  const float *w_e, *w_pos;                       // [d_vocab, d], [n_ctx, d]
  const std::uint32_t *row_token, *row_position;  // [rows]
  __device__ float at(std::uint32_t row, int column, int d) const {
    return w_e[static_cast<std::size_t>(row_token[row]) * d + column] + w_pos[row_position[row] * d + column];
  }
};

}  // namespace deeptail::cuda
