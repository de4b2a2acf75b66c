// Where the residuals of an input begin.
#pragma once

#include <cstddef>
#include <cstdint>

namespace deeptail::cuda {

// Where a row of the input begins: W_E[token] + W_pos[position].
struct Embedding {
  const float *w_e, *w_pos;                       // [d_vocab, d], [n_ctx, d] or null: positions are rotary
  const std::uint32_t *row_token, *row_position;  // [rows]
  __device__ float at(std::uint32_t row, int column, int d) const {
    const float token = w_e[static_cast<std::size_t>(row_token[row]) * d + column];
    return w_pos == nullptr ? token : token + w_pos[static_cast<std::size_t>(row_position[row]) * d + column];
  }
};

}  // namespace deeptail::cuda
