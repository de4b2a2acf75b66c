// Causal attention in fp32, for any number of positions: a warp per input and head, keys and values in shared
// memory.
#pragma once

#include "compute_cuda/exact/twofold_rows.cuh"
#include "compute_cuda/limits.h"
#include "compute_cuda/tiles/fragments.cuh"

namespace deeptail::cuda {

struct AttentionArgs {
  RowCount n;                       // inputs
  int length, n_heads, n_kv_heads;  // head h uses keys and values of head h n_kv_heads / n_heads
  const float* qkv;                 // [rows, heads of queries, keys, values]
  const std::uint32_t* index;       // [n, length]: the row of each position; null: row i length + position
  float query_scale;                // makes scores of base 2
  bool last_only;                   // of the last position only
  TwofoldRows z;                    // [n length, d_attn], or [n, d_attn] from row first_z on
  std::uint32_t first_z;
};

// Rows are padded so that eight lanes that read 16 bytes of a row each use all banks.
template <int kHead>
__host__ __device__ constexpr int padded_head() {
  return kHead + 4;
}
template <int kHead>
constexpr std::size_t attention_bytes_per_warp(int length) {
  return 2 * sizeof(float) * static_cast<std::size_t>(length) * padded_head<kHead>();
}

template <int kHead>
class HeadAttention {
 public:
  static constexpr int kStride = padded_head<kHead>();

  __device__ HeadAttention(const AttentionArgs& args, float* shared)
      : args_(args), keys_(shared), values_(shared + args.length * kStride) {}

  __device__ void run(std::uint32_t input, int head) {
    input_ = input, head_ = head;
    load();
    int row = args_.last_only ? args_.length - 1 : 0;
    for (; row + kFewRows < args_.length; row += 32) many(row);
    for (; row < args_.length; ++row) one(row);
  }

 private:
  static constexpr int kFewRows = 8;  // that many or fewer go one by one
  static constexpr int kGroups = static_cast<int>(kMostPositions) / 32;

  __device__ const float* source(int position) const {
    const std::uint32_t at = input_ * args_.length + position;
    const std::size_t row = args_.index != nullptr ? args_.index[at] : at;
    return args_.qkv + row * ((args_.n_heads + 2 * args_.n_kv_heads) * kHead);
  }
  __device__ const float* query(int position) const { return source(position) + head_ * kHead; }

  __device__ void load() {
    __syncwarp();
    constexpr int kParts = kHead / 4, kRowsAtOnce = 32 / kParts > 0 ? 32 / kParts : 1;
    const int kv_head = head_ * args_.n_kv_heads / args_.n_heads;
    for (int j = lane_ / kParts; j < args_.length; j += kRowsAtOnce)
      for (int part = lane_ % kParts; part < kParts; part += 32) {
        const float* from = source(j) + (args_.n_heads + kv_head) * kHead + 4 * part;
        *reinterpret_cast<float4*>(keys_ + j * kStride + 4 * part) = *reinterpret_cast<const float4*>(from);
        *reinterpret_cast<float4*>(values_ + j * kStride + 4 * part) =
            *reinterpret_cast<const float4*>(from + args_.n_kv_heads * kHead);
      }
    __syncwarp();
  }

  __device__ float4 at4(const float* p) const { return *reinterpret_cast<const float4*>(p); }

  // Positions [first, first + 32), one per lane.
  __device__ void many(int first) {
    const int row = min(first + lane_, args_.length - 1);
    float q[kHead], o[kHead];
    const float* from = query(row);
#pragma unroll
    for (int k = 0; k < kHead; k += 4) {
      const float4 v = at4(from + k);
      q[k] = v.x * args_.query_scale, q[k + 1] = v.y * args_.query_scale;
      q[k + 2] = v.z * args_.query_scale, q[k + 3] = v.w * args_.query_scale;
      o[k] = o[k + 1] = o[k + 2] = o[k + 3] = 0.0f;
    }
    float largest = -INFINITY, sum = 0.0f;
    const int end = min(first + 32, args_.length);
    for (int j = 0; j < end; ++j) {
      float part[4] = {};
#pragma unroll
      for (int k = 0; k < kHead; k += 4) {
        const float4 v = at4(keys_ + j * kStride + k);
        part[0] = fmaf(q[k], v.x, part[0]), part[1] = fmaf(q[k + 1], v.y, part[1]);
        part[2] = fmaf(q[k + 2], v.z, part[2]), part[3] = fmaf(q[k + 3], v.w, part[3]);
      }
      const float score = j <= row ? (part[0] + part[1]) + (part[2] + part[3]) : -INFINITY;
      if (__any_sync(0xffffffffu, score > largest)) {
        const float now = fmaxf(largest, score);  // key 0 is seen by all: finite
        const float shrink = exp2f(largest - now);
        largest = now;
        sum *= shrink;
#pragma unroll
        for (int k = 0; k < kHead; ++k) o[k] *= shrink;
      }
      const float p = exp2f(score - largest);
      sum += p;
#pragma unroll
      for (int k = 0; k < kHead; k += 4) {
        const float4 v = at4(values_ + j * kStride + k);
        o[k] = fmaf(p, v.x, o[k]), o[k + 1] = fmaf(p, v.y, o[k + 1]);
        o[k + 2] = fmaf(p, v.z, o[k + 2]), o[k + 3] = fmaf(p, v.w, o[k + 3]);
      }
    }
    if (first + lane_ >= args_.length) return;
    const float inverse = 1.0f / sum;
#pragma unroll
    for (int k = 0; k < kHead; ++k) o[k] *= inverse;
#pragma unroll
    for (int k = 0; k < kHead; k += 8)
      store_twofold8(args_.z, input_ * args_.length + row, head_ * kHead + k, o + k);
  }

  // One position: a lane per key, then a lane per dimension.
  __device__ void one(int row) {
    float score[kGroups], largest = -INFINITY, sum = 0.0f;
    const float* q = query(row);
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const int j = 32 * group + lane_;
      score[group] = -INFINITY;
      if (32 * group > row) continue;
      const float* key = keys_ + min(j, row) * kStride;
      float part[4] = {};
#pragma unroll
      for (int k = 0; k < kHead; k += 4) {
        const float4 u = at4(q + k), v = at4(key + k);
        part[0] = fmaf(u.x * args_.query_scale, v.x, part[0]);
        part[1] = fmaf(u.y * args_.query_scale, v.y, part[1]);
        part[2] = fmaf(u.z * args_.query_scale, v.z, part[2]);
        part[3] = fmaf(u.w * args_.query_scale, v.w, part[3]);
      }
      if (j <= row) score[group] = (part[0] + part[1]) + (part[2] + part[3]);
      largest = fmaxf(largest, score[group]);
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
#pragma unroll
    for (int group = 0; group < kGroups; ++group) sum += score[group] = exp2f(score[group] - largest);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);

    constexpr int kParts = (kHead + 31) / 32;
    float o[kParts] = {};
#pragma unroll
    for (int group = 0; group < kGroups; ++group)
      for (int j = 32 * group; j <= min(row, 32 * group + 31); ++j) {
        const float p = __shfl_sync(0xffffffffu, score[group], j % 32);
#pragma unroll
        for (int part = 0; part < kParts; ++part)
          o[part] = fmaf(p, values_[j * kStride + (32 * part + lane_) % kHead], o[part]);
      }
    const std::uint32_t to = args_.last_only ? args_.first_z + input_ : input_ * args_.length + row;
#pragma unroll
    for (int part = 0; part < kParts; ++part)
      if (32 * part + lane_ < kHead)
        store_twofold(args_.z, to, head_ * kHead + 32 * part + lane_, o[part] / sum);
  }

  const AttentionArgs& args_;
  float *keys_, *values_;  // [length, kStride]
  std::uint32_t input_ = 0;
  int head_ = 0, lane_ = threadIdx.x % 32;
};

template <int kHead>
__global__ void __launch_bounds__(128) attention(const __grid_constant__ AttentionArgs args) {
  extern __shared__ __align__(16) float attention_memory[];
  const int warps = blockDim.x / 32, warp = threadIdx.x / 32;
  HeadAttention<kHead> worker(args, attention_memory + warp * 2 * args.length * padded_head<kHead>());
  const std::uint32_t items = args.n.get() * args.n_heads;
  for (std::uint32_t item = blockIdx.x * warps + warp; item < items; item += gridDim.x * warps)
    worker.run(item / args.n_heads, static_cast<int>(item % args.n_heads));
}

}  // namespace deeptail::cuda
