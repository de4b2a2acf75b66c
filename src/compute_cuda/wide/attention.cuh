// Attention of wide models, heads of 64, in fp16 with fp32 sums: of all positions by tensor cores, or of the last one alone.
#pragma once

#include "compute_cuda/exact/twofold_rows.cuh"
#include "compute_cuda/tiles/fragments.cuh"
#include "compute_cuda/wide/rows.cuh"

namespace deeptail::cuda {

inline constexpr int kWideHead = 64, kWideQkv = 3 * kWideModel, kWideHeads = kWideModel / kWideHead;

struct WideAttentionArgs {
  std::uint32_t n;  // inputs
  int length;
  const std::uint32_t* rows;  // [n, length]: the row of qkv of each position; null: row i length + position
  const __half* qkv;          // [rows, 1536]; the queries make scores of base 2
  __half* z;  // [n length, 512], or [n, 512] of last positions from row first_z on: rows that products take
  std::uint32_t first_z = 0;
  __device__ const __half* at(std::uint32_t input, int position) const {
    const std::size_t i = static_cast<std::size_t>(input) * length + position;
    return qkv + (rows != nullptr ? static_cast<std::size_t>(rows[i]) : i) * kWideQkv;
  }
};

__device__ inline void load8(const __half* p, float (&v)[8]) {
  const uint4 raw = __ldg(reinterpret_cast<const uint4*>(p));
  const auto* h = reinterpret_cast<const __half2*>(&raw);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 f = __half22float2(h[i]);
    v[2 * i] = f.x, v[2 * i + 1] = f.y;
  }
}

// Of the last position. A warp takes four heads of an input; eight lanes per head, eight dimensions per lane.
template <int kMaxLength>
__global__ void __launch_bounds__(256) wide_last_attention(const __grid_constant__ WideAttentionArgs a) {
  constexpr int kGroups = kMaxLength / 8;
  const int lane = threadIdx.x % 32;
  const std::uint32_t warps = gridDim.x * (blockDim.x / 32);
  for (std::uint32_t item = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; item < 2 * a.n;
       item += warps) {
    const std::uint32_t input = item / 2;
    const int column = 256 * (item % 2) + 8 * lane;
    const __half* own[kMaxLength / 32];  // of positions lane, lane + 32
#pragma unroll
    for (int i = 0; i < kMaxLength / 32; ++i) own[i] = a.at(input, min(32 * i + lane, a.length - 1));
    const auto at = [&](int j) {
      const auto p = reinterpret_cast<unsigned long long>(own[j / 32]);
      return reinterpret_cast<const __half*>(__shfl_sync(0xffffffffu, p, j % 32)) + column;
    };
    float q[8], score[kGroups], largest = -1e30f;  // scores of position 8 group + lane % 8
    load8(at(a.length - 1), q);
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      score[group] = -1e30f;
      if (8 * group >= a.length) continue;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        float k[8], s = 0.0f;
        load8(at(8 * group + i) + kWideModel, k);
#pragma unroll
        for (int d = 0; d < 8; ++d) s = fmaf(q[d], k[d], s);
#pragma unroll
        for (int step = 1; step < 8; step *= 2) s += __shfl_xor_sync(0xffffffffu, s, step);
        if (lane % 8 == i && 8 * group + i < a.length) score[group] = s;
      }
      largest = fmaxf(largest, score[group]);
    }
    float sum = 0.0f, o[8] = {};
#pragma unroll
    for (int step = 1; step < 8; step *= 2)
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
#pragma unroll
    for (int group = 0; group < kGroups; ++group) sum += score[group] = exp2f(score[group] - largest);
#pragma unroll
    for (int step = 1; step < 8; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      if (8 * group >= a.length) continue;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float p = __shfl_sync(0xffffffffu, score[group], lane / 8 * 8 + i);  // 0 beyond the end
        float v[8];
        load8(at(8 * group + i) + 2 * kWideModel, v);
#pragma unroll
        for (int d = 0; d < 8; ++d) o[d] = fmaf(p, v[d], o[d]);
      }
    }
    const float inverse = 1.0f / sum;
    uint4 out = {pack(o[0] * inverse, o[1] * inverse), pack(o[2] * inverse, o[3] * inverse),
                 pack(o[4] * inverse, o[5] * inverse), pack(o[6] * inverse, o[7] * inverse)};
    *reinterpret_cast<uint4*>(a.z + twofold_index(kWideModel, a.first_z + input, column)) = out;
  }
}

// Four 8 by 8 matrices, transposed; lane l gives the address of row l % 8 of matrix l / 8.
__device__ inline void load_transposed(std::uint32_t (&r)[4], const __half* shared_row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared_row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

// Of all positions, at most 64: a warp per input and head. Values lie in shared memory, since products want them by columns.
inline constexpr int kWideAttentionWarps = 4, kValueStride = kWideHead + 8;
struct WideValues {
  __half v[kWideAttentionWarps][64][kValueStride];
};

class WideHeadAttention {
 public:
  __device__ WideHeadAttention(const WideAttentionArgs& args, __half (*values)[kValueStride])
      : a_(args), values_(values) {}

  __device__ void run(std::uint32_t input, int head) {
    input_ = input, column_ = head * kWideHead;
    const int padded = (a_.length + 15) / 16 * 16;
    __syncwarp();
    for (int j = lane_ / 8; j < padded; j += 4) {
      uint4 v = {0, 0, 0, 0};
      if (j < a_.length) v = *reinterpret_cast<const uint4*>(at(j) + 2 * kWideModel + 8 * (lane_ % 8));
      *reinterpret_cast<uint4*>(&values_[j][8 * (lane_ % 8)]) = v;
    }
    __syncwarp();
    for (int first = 0; first < a_.length; first += 16) rows(first);
  }

 private:
  __device__ const __half* at(int position) const {
    return a_.at(input_, min(position, a_.length - 1)) + column_;
  }
  __device__ static std::uint32_t word(const __half* p) {
    return __ldg(reinterpret_cast<const std::uint32_t*>(p));
  }

  // Positions [first, first + 16).
  __device__ void rows(int first) {
    const int g = lane_ / 4, t = lane_ % 4;
    std::uint32_t q[4][4];
    const __half *low = at(first + g) + 2 * t, *high = at(first + g + 8) + 2 * t;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      q[k][0] = word(low + 16 * k), q[k][1] = word(high + 16 * k);
      q[k][2] = word(low + 16 * k + 8), q[k][3] = word(high + 16 * k + 8);
    }
    float s[8][4];  // 8 keys each
    const int n_tiles = first / 8 + 2;
    float largest[2] = {-1e30f, -1e30f}, sum[2] = {};
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0.0f;
      if (n >= n_tiles) continue;
      const __half* key = at(8 * n + g) + kWideModel + 2 * t;
#pragma unroll
      for (int k = 0; k < 4; ++k) mma(s[n], q[k], word(key + 16 * k), word(key + 16 * k + 8));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (8 * n + 2 * t + i % 2 > first + g + 8 * (i / 2)) s[n][i] = -1e30f;
        largest[i / 2] = fmaxf(largest[i / 2], s[n][i]);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) largest[half] = row_max(largest[half]);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      if (n >= n_tiles) continue;
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[i / 2] += s[n][i] = exp2_approx(s[n][i] - largest[i / 2]);
    }
    float o[8][4] = {};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (2 * k >= n_tiles) continue;
      std::uint32_t p[4];
      to_factor(s[2 * k], s[2 * k + 1], p);
#pragma unroll
      for (int n = 0; n < 8; n += 2) {
        std::uint32_t b[4];
        load_transposed(b, &values_[16 * k + lane_ % 16][8 * (n + lane_ / 16)]);
        mma(o[n], p, b[0], b[1]);
        mma(o[n + 1], p, b[2], b[3]);
      }
    }
    store(o, first, 1.0f / row_sum(sum[0]), 1.0f / row_sum(sum[1]));
  }

  __device__ void store(const float (&o)[8][4], int first, float low, float high) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int position = first + lane_ / 4 + 8 * half;
      if (position >= a_.length) continue;
      const float scale = half == 0 ? low : high;
#pragma unroll
      for (int n = 0; n < 8; ++n)
        *reinterpret_cast<std::uint32_t*>(a_.z + twofold_index(kWideModel, input_ * a_.length + position,
                                                               column_ + 8 * n + 2 * (lane_ % 4))) =
            pack(o[n][2 * half] * scale, o[n][2 * half + 1] * scale);
    }
  }

  const WideAttentionArgs& a_;
  __half (*values_)[kValueStride];
  std::uint32_t input_ = 0;
  int column_ = 0, lane_ = threadIdx.x % 32;
};

__global__ void __launch_bounds__(32 * kWideAttentionWarps)
    wide_attention(const __grid_constant__ WideAttentionArgs args) {
  __shared__ __align__(16) WideValues shared;
  const int warp = threadIdx.x / 32;
  WideHeadAttention worker(args, shared.v[warp]);
  const std::uint32_t items = args.n * kWideHeads;
  for (std::uint32_t item = blockIdx.x * kWideAttentionWarps + warp; item < items;
       item += gridDim.x * kWideAttentionWarps)
    worker.run(item / kWideHeads, static_cast<int>(item % kWideHeads));
}

}  // namespace deeptail::cuda
