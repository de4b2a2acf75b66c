// The first layer's queries, keys and values of every (position, token) pair, in fp16.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "compute_cuda/tiles/embedding.cuh"

namespace deeptail::cuda {

// Mean over the block's 128 values, one per thread; every thread gets it. scratch: shared, [4].
__device__ inline float block_mean(float v, float* scratch) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  return (scratch[0] + scratch[1] + scratch[2] + scratch[3]) / 128.0f;
}

// One block of 128 threads per row. out: [rows, 384], with the queries times query_scale.
__global__ void first_layer_rows(Embedding e, const float* ln_w, const float* ln_b, float eps,
                                 const float* w_qkv, const float* b_qkv, float query_scale, __half* out) {
  constexpr int kD = 128, kOut = 3 * kD;
  __shared__ float y[kD], scratch[4];
  const std::uint32_t row = blockIdx.x;
  const int c = threadIdx.x;
  const float x = e.at(row, c, kD);
  const float centred = x - block_mean(x, scratch);
  const float variance = block_mean(centred * centred, scratch);
  y[c] = fmaf(centred / sqrtf(variance + eps), ln_w[c], ln_b[c]);
  __syncthreads();
  for (int part = 0; part < 3; ++part) {
    const int column = part * kD + c;
    float sum = b_qkv[column];
    for (int k = 0; k < kD; ++k) sum = fmaf(y[k], w_qkv[k * kOut + column], sum);
    const std::size_t at = static_cast<std::size_t>(row) * kOut + column;
    out[at] = __float2half_rn(part == 0 ? sum * query_scale : sum);
  }
}

}  // namespace deeptail::cuda
