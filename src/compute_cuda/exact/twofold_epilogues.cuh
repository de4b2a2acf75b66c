// What becomes of products (twofold_kernel.cuh).
#pragma once

#include "compute_cuda/exact/head_and_gates.h"
#include "compute_cuda/exact/twofold_rows.cuh"
#include "compute_cuda/tiles/fragments.cuh"

namespace deeptail::cuda {

// Calls visit(row, column, v0, v1) for every pair of neighbouring results that exists: bias added.
template <class Visit>
__device__ inline void for_each_pair(const float (&c)[16][4], std::uint32_t first_row, std::uint32_t n,
                                     int first_column, int n_valid, const float* bias, const Visit& visit) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int tile = 0; tile < 16; ++tile) {
    const int column = first_column + 8 * tile + 2 * (lane % 4);
    if (column >= n_valid) continue;  // n_valid is even
    float2 b = {0.0f, 0.0f};
    if (bias != nullptr) b = load2(bias + column);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t row = first_row + 8 * half + lane / 4;
      if (row < n) visit(row, column, c[tile][2 * half] + b.x, c[tile][2 * half + 1] + b.y);
    }
  }
}

struct EpilogueBase {
  const float* bias;
  int n_valid;
  std::uint32_t n;
  __device__ void begin(std::uint32_t, std::uint32_t n_rows) { n = n_rows; }
  __device__ void end(std::uint32_t, int) {}
};

struct StoreFloats : EpilogueBase {
  float* out;
  int stride;
  __device__ void take(const float (&c)[16][4], std::uint32_t row, int column) const {
    for_each_pair(c, row, n, column, n_valid, bias, [&](std::uint32_t r, int k, float v0, float v1) {
      *reinterpret_cast<float2*>(out + static_cast<std::size_t>(r) * stride + k) = {v0, v1};
    });
  }
};

struct AddFloats : EpilogueBase {
  float* x;
  int stride;
  __device__ void take(const float (&c)[16][4], std::uint32_t row, int column) const {
    for_each_pair(c, row, n, column, n_valid, bias, [&](std::uint32_t r, int k, float v0, float v1) {
      auto* at = reinterpret_cast<float2*>(x + static_cast<std::size_t>(r) * stride + k);
      const float2 old = *at;
      *at = {old.x + v0, old.y + v1};
    });
  }
};

struct StoreGelu : EpilogueBase {
  TwofoldRows out;
  __device__ void take(const float (&c)[16][4], std::uint32_t row, int column) const {
    for_each_pair(c, row, n, column, n_valid, bias, [&](std::uint32_t r, int k, float v0, float v1) {
      store_twofold2(out, r, k, gelu_fp32(v0), gelu_fp32(v1));
    });
  }
};

struct StoreGeluTanh : EpilogueBase {
  TwofoldRows out;
  __device__ void take(const float (&c)[16][4], std::uint32_t row, int column) const {
    for_each_pair(c, row, n, column, n_valid, bias, [&](std::uint32_t r, int k, float v0, float v1) {
      store_twofold2(out, r, k, gelu_tanh_fp32(v0), gelu_tanh_fp32(v1));
    });
  }
};

// Neighbouring columns are the gate and the value of one hidden number.
struct StoreSwiGlu : EpilogueBase {
  TwofoldRows out;
  __device__ void take(const float (&c)[16][4], std::uint32_t row, int column) const {
    for_each_pair(c, row, n, column, n_valid, bias, [&](std::uint32_t r, int k, float gate, float value) {
      store_twofold(out, r, k / 2, swiglu_fp32(gate, value));
    });
  }
};

// The largest logit but the target's, and the target's. bias: [all columns], very low beyond the vocabulary.
struct BestOther {
  const float* bias;
  const std::uint32_t* target;  // [n]
  std::size_t stride;           // rows of the results of one slice
  float *best, *own;            // [slices, stride]
  std::uint32_t* id;

  std::uint32_t n;
  float now_best[2], now_own[2];
  int now_id[2], now_target[2];

  __device__ void begin(std::uint32_t first_row, std::uint32_t n_rows) {
    n = n_rows;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t row = first_row + 8 * half + threadIdx.x % 32 / 4;
      now_best[half] = now_own[half] = -INFINITY;
      now_id[half] = 0;
      now_target[half] = row < n ? static_cast<int>(target[row]) : -1;
    }
  }
  __device__ void take(const float (&c)[16][4], std::uint32_t, int first_column) {
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int tile = 0; tile < 16; ++tile) {
      const int column = first_column + 8 * tile + 2 * t;
      const float2 b = load2(bias + column);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        add(half, column, c[tile][2 * half] + b.x);
        add(half, column + 1, c[tile][2 * half + 1] + b.y);
      }
    }
  }
  __device__ void add(int half, int column, float value) {
    const bool is_target = column == now_target[half];
    now_own[half] = is_target ? value : now_own[half];
    const bool wins = value > now_best[half] && !is_target;
    now_best[half] = wins ? value : now_best[half];
    now_id[half] = wins ? column : now_id[half];
  }
  __device__ void end(std::uint32_t first_row, int slice) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float b = now_best[half], o = now_own[half];
      int i = now_id[half];
#pragma unroll
      for (int step = 1; step < 4; step *= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, b, step);
        const int other_id = __shfl_xor_sync(0xffffffffu, i, step);
        i = other > b || (other == b && other_id < i) ? other_id : i;
        b = fmaxf(b, other);
        o = fmaxf(o, __shfl_xor_sync(0xffffffffu, o, step));
      }
      const std::uint32_t row = first_row + 8 * half + lane / 4;
      if (lane % 4 != 0 || row >= n) continue;
      const std::size_t at = slice * stride + row;
      best[at] = b, own[at] = o, id[at] = static_cast<std::uint32_t>(i);
    }
  }
};

}  // namespace deeptail::cuda
