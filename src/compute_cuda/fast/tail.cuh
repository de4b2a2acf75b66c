// From the last block's attention to the token said or the margin, in two kernels: W_V (for more than one
// layer), W_O, MLP and ln_final; unembedding and argmax. Logits exist in registers only. Two kernels because
// the second needs half the registers, and twice the warps hide what the argmax costs.
#pragma once

#include "compute_cuda/fast/fast_forward.h"
#include "compute_cuda/tiles/embedding.cuh"
#include "compute_cuda/tiles/products.cuh"

namespace deeptail::cuda {

struct LastMlpArgs {
  std::uint32_t n;
  int length, d_mlp;
  float eps;
  const __half* z;         // [n, 128]: attention of the last block (one layer),
  const __half* averages;  // [n, heads, 128]: or the rows of which it is to be made (last_block.cuh)
  const float* x_last;     // [n, 128]: residual before it (not for one layer: embedding of the last position)
  Embedding embedding;
  const std::uint32_t* rows;  // [n, length]
  const float *ln_final_w, *ln_final_b;
  const uint4* chunks;
  int n_chunks;
  __half* out;  // [n, 128]: as W_U takes it
};

// Wanted: what becomes of a row's logits (CountSaid, StoreMargin).
template <class Wanted>
struct UnembedArgs {
  std::uint32_t n;
  const __half* y;  // [n, 128]
  const uint4* chunks;
  int n_chunks;
  Wanted wanted;
};

// The two largest logits of a row so far, in ascending order of ids: of equal ones the first stays.
struct TopTwo {
  float best = -INFINITY, second = -INFINITY;
  int id = 0;
  __device__ void add(float value, int column) {
    second = fmaxf(second, fminf(best, value));
    id = value > best ? column : id;
    best = fmaxf(best, value);
  }
  __device__ void merge(float other_best, float other_second, int other_id) {
    const bool other_wins = other_best > best || (other_best == best && other_id < id);
    second = fmaxf(fminf(best, other_best), fmaxf(second, other_second));
    best = fmaxf(best, other_best);
    id = other_wins ? other_id : id;
  }
};

// The rows of a warp: 16 consecutive inputs, those beyond the end repeating the last.
struct WarpRows {
  std::uint32_t first, n;
  int lane;
  __device__ std::uint32_t row(int half) const { return first + 8 * half + lane / 4; }
  __device__ std::uint32_t clamped(int half) const { return min(row(half), n - 1); }
};

// The A tiles of rows in memory, `stride` halves apart.
__device__ inline void load_factor(const __half* rows, std::size_t stride, const WarpRows& at, Factor& a) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const __half* row = rows + at.clamped(half) * stride + 2 * (at.lane % 4);
#pragma unroll
    for (int k = 0; k < kTilesK; ++k)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        a[k][2 * i + half] = __ldg(reinterpret_cast<const std::uint32_t*>(row + 16 * k + 8 * i));
  }
}

inline constexpr int kMlpStages = 6, kUnembedStages = 5;
// Warps of a thread block, and inputs: as many as registers allow (the MLP), or two blocks side by side.
inline constexpr int kMlpWarps = 12, kMlpRows = 16 * kMlpWarps;
inline constexpr int kUnembedWarps = 8, kUnembedRows = 16 * kUnembedWarps;
using MlpStream = WeightStream<32 * kMlpWarps, kMlpStages>;
using UnembedStream = WeightStream<32 * kUnembedWarps, kUnembedStages>;

template <bool kDeep>
class LastMlp {
 public:
  __device__ LastMlp(const LastMlpArgs& args, MlpStream::Shared& shared)
      : args_(args), stream_(args.chunks, args.n_chunks, shared) {}

  __device__ void run(std::uint32_t first) {
    const WarpRows at{first + 16 * (threadIdx.x / 32), args_.n, lane_};
    Factor z;  // attention; before the residuals, for which there would be no registers
    if constexpr (kDeep)
      values(at, z);
    else
      load_factor(args_.z, kWidth, at, z);
    Residual x;
    begin(at, x);
    add_attention(z, x);
    mlp(x, args_.eps, args_.d_mlp, stream_, lane_);
    Factor a;
    layernorm(x, args_.ln_final_w, args_.ln_final_b, args_.eps, lane_ % 4, a);
    write(at, a);
  }

 private:
  __device__ void begin(const WarpRows& at, Residual& x) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::size_t i = at.clamped(half);
      const int column = 2 * (lane_ % 4);
      if constexpr (kDeep) {
#pragma unroll
        for (int n = 0; n < kTilesN; ++n) {
          const float2 v = load2(args_.x_last + i * kWidth + 8 * n + column);
          x[n][2 * half] = v.x, x[n][2 * half + 1] = v.y;
        }
      } else {
        const std::uint32_t r = args_.rows[(i + 1) * args_.length - 1];
        const float* e =
            args_.embedding.w_e + static_cast<std::size_t>(args_.embedding.row_token[r]) * kWidth;
        const float* p = args_.embedding.w_pos + args_.embedding.row_position[r] * kWidth;
#pragma unroll
        for (int n = 0; n < kTilesN; ++n) {
          const float2 u = load2(e + 8 * n + column), v = load2(p + 8 * n + column);
          x[n][2 * half] = u.x + v.x, x[n][2 * half + 1] = u.y + v.y;
        }
      }
    }
  }

  __device__ void add_attention(const Factor& z, Residual& x) {
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const Chunk chunk = stream_.next();
      if (side == 0) add_bias(x, chunk.first(), lane_ % 4);
      add_times_rows<4>(x, chunk.tiles, lane_, z + 4 * side);
    }
  }
  // Averages of rows to averages of values. A chunk has the columns of two heads, of which a head's rows need
  // half.
  __device__ void values(const WarpRows& at, Factor& z) {
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const Chunk chunk = stream_.next();
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        Factor a;
        load_factor(args_.averages + (2 * side + h) * kWidth, kHeads * kWidth, at, a);
        float c[8][4];
        times_columns<8>(chunk, lane_, c, a);
#pragma unroll
        for (int k = 0; k < 2; ++k)
          to_factor(c[4 * h + 2 * k], c[4 * h + 2 * k + 1], z[4 * side + 2 * h + k]);
      }
    }
  }

  __device__ void write(const WarpRows& at, const Factor& a) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (at.row(half) >= args_.n) continue;
      auto* to =
          reinterpret_cast<std::uint32_t*>(args_.out + static_cast<std::size_t>(at.row(half)) * kWidth) +
          lane_ % 4;
#pragma unroll
      for (int k = 0; k < kTilesK; ++k) to[8 * k] = a[k][half], to[8 * k + 4] = a[k][2 + half];
    }
  }

  const LastMlpArgs& args_;
  MlpStream stream_;
  int lane_ = threadIdx.x % 32;
};

template <bool kDeep>
__global__ void __launch_bounds__(32 * kMlpWarps, 1) last_mlp(const __grid_constant__ LastMlpArgs args) {
  extern __shared__ __align__(128) unsigned char memory[];
  LastMlp<kDeep> worker(args, *reinterpret_cast<MlpStream::Shared*>(memory));
  for (std::uint32_t first = blockIdx.x * kMlpRows; first < args.n; first += gridDim.x * kMlpRows)
    worker.run(first);
}

// settle() of what is wanted is called by all lanes of a warp together, with the row's number (n or more: no
// such row) and its two largest logits; the four lanes that share a row have the same.
struct CountSaid {
  NearTies near;
  Verdicts verdicts;

  __device__ void settle(const TopTwo& top, const __half*, std::uint32_t i, std::uint32_t n, int lane) const {
    if (lane % 4 != 0 || i >= n) return;
    const float gap = top.best - top.second;
    if (verdicts.said != nullptr) verdicts.said[i] = top.id;
    if (verdicts.gap != nullptr) verdicts.gap[i] = gap;
    if (gap > near.bound)
      atomicAdd(verdicts.counts + top.id, 1ULL);
    else
      near.listed[atomicAdd(near.n_listed, 1U)] = near.first + i;
  }
};

// The target's logit minus the largest other one.
struct StoreMargin {
  const std::uint32_t* target;  // [n]
  const __half* w_u;            // [d_vocab, 128]: W_U transposed
  const float* b_u;             // [d_vocab]
  float* margin;                // [n]

  // The target's logit by a product of its own: a quarter of it in each of the four lanes.
  __device__ void settle(const TopTwo& top, const __half* y, std::uint32_t i, std::uint32_t n,
                         int lane) const {
    const std::uint32_t at = min(i, n - 1), id = target[at];
    const auto* row = reinterpret_cast<const uint4*>(y + static_cast<std::size_t>(at) * kWidth);
    const auto* column = reinterpret_cast<const uint4*>(w_u + static_cast<std::size_t>(id) * kWidth);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kWidth / 32; ++k) sum += dot8(row[4 * k + lane % 4], column[4 * k + lane % 4]);
    const float own = row_sum(sum) + b_u[id];
    if (lane % 4 != 0 || i >= n) return;
    margin[i] = own - (top.id == static_cast<int>(id) ? top.second : top.best);
  }

  __device__ static float dot8(uint4 a, uint4 b) {
    const auto* x = reinterpret_cast<const __half2*>(&a);
    const auto* y = reinterpret_cast<const __half2*>(&b);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 u = __half22float2(x[k]), v = __half22float2(y[k]);
      sum = fmaf(u.x, v.x, fmaf(u.y, v.y, sum));
    }
    return sum;
  }
};

template <class Wanted>
class Unembed {
 public:
  __device__ Unembed(const UnembedArgs<Wanted>& args, UnembedStream::Shared& shared)
      : args_(args), stream_(args.chunks, args.n_chunks, shared) {}

  __device__ void run(std::uint32_t first) {
    const WarpRows at{first + 16 * (threadIdx.x / 32), args_.n, lane_};
    Factor a;
    load_factor(args_.y, kWidth, at, a);
    TopTwo top[2];
    for (int i = 0; i < args_.n_chunks; ++i) look(a, 64 * i, top);
#pragma unroll
    for (int half = 0; half < 2; ++half) settle(top[half], at.row(half));
  }

 private:
  // The next 64 columns.
  __device__ void look(const Factor& a, int first, TopTwo (&top)[2]) {
    float c[8][4];
    times_columns<8>(stream_.next(), lane_, c, a);
    const int column = first + 2 * (lane_ % 4);
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) top[half].add(c[n][2 * half + i], column + 8 * n + i);
  }

  __device__ void settle(TopTwo& top, std::uint32_t i) const {
#pragma unroll
    for (int step = 1; step < 4; step *= 2)
      top.merge(__shfl_xor_sync(0xffffffffu, top.best, step), __shfl_xor_sync(0xffffffffu, top.second, step),
                __shfl_xor_sync(0xffffffffu, top.id, step));
    args_.wanted.settle(top, args_.y, i, args_.n, lane_);
  }

  const UnembedArgs<Wanted>& args_;
  UnembedStream stream_;
  int lane_ = threadIdx.x % 32;
};

template <class Wanted>
__global__ void __launch_bounds__(32 * kUnembedWarps, 2)
    unembed(const __grid_constant__ UnembedArgs<Wanted> args) {
  extern __shared__ __align__(128) unsigned char memory[];
  Unembed<Wanted> worker(args, *reinterpret_cast<UnembedStream::Shared*>(memory));
  for (std::uint32_t first = blockIdx.x * kUnembedRows; first < args.n; first += gridDim.x * kUnembedRows)
    worker.run(first);
}

}  // namespace deeptail::cuda
