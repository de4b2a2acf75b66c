// What the forward engine does around its products: where residuals begin, what is kept of them, and how many
// inputs there are where only the device knows.
#pragma once

#include "compute_cuda/exact/twofold_rows.cuh"
#include "compute_cuda/tiles/embedding.cuh"

namespace deeptail::cuda {

// x[i] = the embedding of row rows[(i + 1) stride - 1]: all rows with stride 1, last positions with the
// length.
__global__ void gather_embedding(Embedding e, RowCount n, int stride, int d, const std::uint32_t* rows,
                                 float* x) {
  const std::uint64_t total = static_cast<std::uint64_t>(n.get()) * d;
  for (std::uint64_t i = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x; i < total;
       i += static_cast<std::uint64_t>(gridDim.x) * blockDim.x) {
    const std::uint64_t row = i / d;
    x[i] = e.at(rows == nullptr ? static_cast<std::uint32_t>(row) : rows[(row + 1) * stride - 1],
                static_cast<int>(i % d), d);
  }
}

// to[i] = from[(i + 1) stride - 1].
__global__ void gather_last(RowCount n, int stride, int d, const float* from, float* to) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n.get() * d) to[i] = from[(static_cast<std::size_t>(i / d) + 1) * stride * d - d + i % d];
}

// Of *n_device inputs, those [first, first + n), in pieces: counts[0] = how many there are, then for every
// piece how many, and how many positions they have.
__global__ void count_pieces(const std::uint32_t* n_device, std::uint32_t first, std::uint32_t n,
                             std::uint32_t piece, int length, std::uint32_t* counts) {
  const std::uint32_t all = min(max(*n_device, first) - first, n);
  if (threadIdx.x == 0) counts[0] = all;
  for (std::uint32_t i = threadIdx.x; i * piece < n; i += blockDim.x) {
    const std::uint32_t here = min(max(all, i * piece) - i * piece, piece);
    counts[1 + 2 * i] = here;
    counts[2 + 2 * i] = here * length;
  }
}

}  // namespace deeptail::cuda
