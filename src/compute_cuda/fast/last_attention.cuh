// Attention of the last position over first-layer keys and values: all that a one-layer model needs before
// the tail.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace deeptail::cuda {

__device__ inline float4 load4(const __half* p) {
  const uint2 raw = __ldg(reinterpret_cast<const uint2*>(p));
  const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&raw.x));
  const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&raw.y));
  return {low.x, low.y, high.x, high.y};
}

__device__ inline void store4(__half* p, float4 v) {
  reinterpret_cast<__half2*>(p)[0] = __floats2half2_rn(v.x, v.y);
  reinterpret_cast<__half2*>(p)[1] = __floats2half2_rn(v.z, v.w);
}

// A warp per input; eight lanes per head, four dimensions per lane. qkv: [rows, 384] of the first layer;
// the queries make scores of base 2. z: [n, 128].
template <int kMaxLength>
__global__ void __launch_bounds__(256)
    last_attention(std::uint32_t n, int length, const std::uint32_t* rows, const __half* qkv, __half* z) {
  constexpr int kGroups = kMaxLength / 8;
  const int lane = threadIdx.x % 32;
  const std::uint32_t warps = gridDim.x * (blockDim.x / 32);
  for (std::uint32_t input = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; input < n; input += warps) {
    const std::uint32_t* own = rows + static_cast<std::size_t>(input) * length;
    std::uint32_t row[kMaxLength / 32];
#pragma unroll
    for (int i = 0; i < kMaxLength / 32; ++i) row[i] = own[min(32 * i + lane, length - 1)];
    const auto at = [&](int j) {  // where position j's keys begin, for this lane
      const std::uint32_t r = __shfl_sync(0xffffffffu, row[j / 32], j % 32);
      return qkv + static_cast<std::size_t>(r) * 384 + 128 + 4 * lane;
    };
    const float4 q = load4(at(length - 1) - 128);
    float score[kGroups];  // of position 8 group + lane % 8, for this lane's head
    float largest = -1e30f;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      score[group] = -1e30f;
      if (8 * group >= length) continue;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float4 k = load4(at(8 * group + i));
        float s = fmaf(q.x, k.x, fmaf(q.y, k.y, fmaf(q.z, k.z, q.w * k.w)));
        s += __shfl_xor_sync(0xffffffffu, s, 1);
        s += __shfl_xor_sync(0xffffffffu, s, 2);
        s += __shfl_xor_sync(0xffffffffu, s, 4);
        if (lane % 8 == i && 8 * group + i < length) score[group] = s;
      }
      largest = fmaxf(largest, score[group]);
    }
#pragma unroll
    for (int step = 1; step < 8; step *= 2)
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
    float sum = 0.0f;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) sum += score[group] = exp2f(score[group] - largest);
#pragma unroll
    for (int step = 1; step < 8; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);

    float4 o = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      if (8 * group >= length) continue;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float p = __shfl_sync(0xffffffffu, score[group], lane / 8 * 8 + i);  // 0 beyond the end
        const float4 v = load4(at(8 * group + i) + 128);
        o = {fmaf(p, v.x, o.x), fmaf(p, v.y, o.y), fmaf(p, v.z, o.z), fmaf(p, v.w, o.w)};
      }
    }
    store4(z + static_cast<std::size_t>(input) * 128 + 4 * lane,
           {o.x / sum, o.y / sum, o.z / sum, o.w / sum});
  }
}

}  // namespace deeptail::cuda
