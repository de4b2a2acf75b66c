// Attention of the last block of a deep model at the last position, without keys or values: as fast/last_block.cuh.
//
// The score of position j is q . W_K y_j = (W_K^T q) . y_j with its normalised residual y_j (what b_K adds is the same for all j), and the
// weighted sum of values is W_V of the weighted sum of the y_j. Products make u = W_K^T q of every head before this, and values after it.
#pragma once

#include "compute_cuda/wide/attention.cuh"

namespace deeptail::cuda {

inline constexpr int kWideAverages = kWideHeads * kWideModel;  // of an input: a row for every head

struct WideAverageArgs {
  std::uint32_t n;
  int length;
  const __half* y;  // [n length, 512]: rows that products take
  const __half* u;  // [n, heads, 512]; makes scores of base 2
  __half* average;  // [n, heads * 512]: rows that products take
};

inline constexpr int kAverageStride = kWideModel + 8;  // four banks further for every row
constexpr std::size_t wide_average_bytes(int length) {
  return static_cast<std::size_t>((length + 15) / 16 * 16) * kAverageStride * sizeof(__half);
}

// A block of four warps takes an input, a warp a quarter of the columns.
class WideAverage {
 public:
  using Scores = float[4][kWideHeads][64];
  __device__ WideAverage(const WideAverageArgs& args, __half* rows, Scores& scores)
      : a_(args), rows_(rows), scores_(scores) {}

  __device__ void run(std::uint32_t input) {
    __syncthreads();  // what the input before left may still be read
    load(input);
    __syncthreads();
    multiply(input);
    __syncthreads();
    float s[8][4];
    softmax(s);
    average(input, s);
  }

 private:
  static constexpr int kOwn = kWideModel / 4;

  __device__ void load(std::uint32_t input) const {
    const int padded = (a_.length + 15) / 16 * 16;
    for (int i = static_cast<int>(threadIdx.x); i < padded * (kWideModel / 8); i += 128) {
      const int k = i / padded, j = i % padded;
      uint4 v = {0, 0, 0, 0};
      if (j < a_.length)
        v = *reinterpret_cast<const uint4*>(a_.y + twofold_index(kWideModel, input * a_.length + j, 8 * k));
      *reinterpret_cast<uint4*>(rows_ + j * kAverageStride + 8 * k) = v;
    }
  }

  // This warp's part of all scores; heads are rows, of which a tile has twice as many.
  __device__ void multiply(std::uint32_t input) const {
    float s[8][4] = {};
    const __half* u =
        a_.u + static_cast<std::size_t>(input) * kWideAverages + g_ * kWideModel + kOwn * warp_ + 2 * t_;
#pragma unroll
    for (int k = 0; k < kOwn / 16; ++k) {
      const std::uint32_t factor[4] = {word(u + 16 * k), 0, word(u + 16 * k + 8), 0};
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        if (8 * n >= a_.length) continue;
        const __half* y = rows_ + (8 * n + g_) * kAverageStride + kOwn * warp_ + 16 * k + 2 * t_;
        mma(s[n], factor, word(y), word(y + 8));
      }
    }
#pragma unroll
    for (int n = 0; n < 8; ++n)
      *reinterpret_cast<float2*>(&scores_[warp_][g_][8 * n + 2 * t_]) = {s[n][0], s[n][1]};
  }

  // s = the shares of positions, of head g.
  __device__ void softmax(float (&s)[8][4]) const {
    float largest = -1e30f, sum = 0.0f;
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int j = 8 * n + 2 * t_ + i;
        const float v = (scores_[0][g_][j] + scores_[1][g_][j]) + (scores_[2][g_][j] + scores_[3][g_][j]);
        s[n][i] = j < a_.length ? v : -1e30f;
        s[n][2 + i] = 0.0f;
        largest = fmaxf(largest, s[n][i]);
      }
    largest = row_max(largest);
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) sum += s[n][i] = exp2_approx(s[n][i] - largest);
    const float inverse = 1.0f / row_sum(sum);
#pragma unroll
    for (int n = 0; n < 8; ++n) s[n][0] *= inverse, s[n][1] *= inverse;
  }

  __device__ void average(std::uint32_t input, const float (&s)[8][4]) const {
    float o[kOwn / 8][4] = {};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (16 * k >= a_.length) continue;
      std::uint32_t p[4];
      to_factor(s[2 * k], s[2 * k + 1], p);
#pragma unroll
      for (int n = 0; n < kOwn / 8; n += 2) {
        std::uint32_t b[4];
        load_transposed(b,
                        rows_ + (16 * k + lane_ % 16) * kAverageStride + kOwn * warp_ + 8 * (n + lane_ / 16));
        mma(o[n], p, b[0], b[1]);
        mma(o[n + 1], p, b[2], b[3]);
      }
    }
#pragma unroll
    for (int n = 0; n < kOwn / 8; ++n)
      *reinterpret_cast<std::uint32_t*>(
          a_.average + twofold_index(kWideAverages, input, g_ * kWideModel + kOwn * warp_ + 8 * n + 2 * t_)) =
          pack(o[n][0], o[n][1]);
  }

  __device__ static std::uint32_t word(const __half* p) { return *reinterpret_cast<const std::uint32_t*>(p); }

  const WideAverageArgs& a_;
  __half* rows_;  // [length rounded up to 16, kAverageStride]
  Scores& scores_;
  int warp_ = threadIdx.x / 32, lane_ = threadIdx.x % 32, g_ = lane_ / 4, t_ = lane_ % 4;
};

__global__ void __launch_bounds__(128) wide_average(const __grid_constant__ WideAverageArgs args) {
  extern __shared__ __align__(16) __half average_rows[];
  __shared__ WideAverage::Scores scores;
  WideAverage worker(args, average_rows, scores);
  for (std::uint32_t input = blockIdx.x; input < args.n; input += gridDim.x) worker.run(input);
}

// Rows of last positions: x_last[i] = x[(i + 1) length - 1], and the same of y. A warp per row.
__global__ void __launch_bounds__(256)
    wide_last(std::uint32_t n, int length, const __half* x, const __half* y, float* x_last, __half* y_last) {
  const std::uint32_t i = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (i >= n) return;
  const std::uint32_t from = (i + 1) * length - 1;
  auto* to = reinterpret_cast<float2*>(x_last + static_cast<std::size_t>(i) * kWideModel);
#pragma unroll
  for (int k = 0; k < kWideModel / 64; ++k)
    to[32 * k + lane] = residual2(x, from, 64 * k + 2 * static_cast<int>(lane));
#pragma unroll
  for (int k = 0; k < kWideModel / 256; ++k) {
    const int at = 256 * k + 8 * static_cast<int>(lane);
    *reinterpret_cast<uint4*>(y_last + twofold_index(kWideModel, i, at)) =
        *reinterpret_cast<const uint4*>(y + twofold_index(kWideModel, from, at));
  }
}

}  // namespace deeptail::cuda
