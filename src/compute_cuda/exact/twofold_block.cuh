// From attention to the end of a block in one kernel, in twofold fp16, for rows of 128 and weights that fp16
// holds exactly: W_O, residual, ln2, MLP, residual, and the norm that comes next.
#pragma once

#include "compute_cuda/exact/twofold_rows.cuh"
#include "compute_cuda/tiles/products.cuh"

namespace deeptail::cuda {

struct TwofoldBlockArgs {
  RowCount n;
  int d_mlp;
  float eps;
  TwofoldRows z;        // [n, 128]
  float* x;             // [n, 128]: residuals before the block, then after it
  const uint4* chunks;  // the weight stream of pack_rest
  int n_chunks;
  const float *next_w, *next_b;  // of the norm that comes next
  TwofoldRows y;                 // [n, 128]: the residuals after that norm
};

inline constexpr int kTwofoldBlockWarps = 8, kTwofoldBlockStages = 6;
using TwofoldBlockStream = WeightStream<32 * kTwofoldBlockWarps, kTwofoldBlockStages>;

// High and low part of two neighbours, as one register each.
__device__ inline void pack_twofold(float v0, float v1, std::uint32_t& high, std::uint32_t& low) {
  const __half2 h = __floats2half2_rn(v0, v1);
  const float2 rounded = __half22float2(h);
  high = *reinterpret_cast<const std::uint32_t*>(&h);
  low = pack(v0 - rounded.x, v1 - rounded.y);
}

class TwofoldBlock {
 public:
  __device__ TwofoldBlock(const TwofoldBlockArgs& args, std::uint32_t n, TwofoldBlockStream::Shared& shared)
      : args_(args), n_(n), stream_(args.chunks, args.n_chunks, shared) {}

  // Row tile `tile`.
  __device__ void run(std::uint32_t tile) {
    tile_ = tile;
    Residual x;
    load(x);
    add_attention(x);
    add_mlp(x);
    store(x);
  }

 private:
  __device__ std::uint32_t row(int half) const {
    return tile_ * kTileRows + 16 * (threadIdx.x / 32) + 8 * half + lane_ / 4;
  }
  __device__ float* residual(int half) const {
    return args_.x + static_cast<std::size_t>(min(row(half), n_ - 1)) * kWidth + 2 * (lane_ % 4);
  }

  __device__ void load(Residual& x) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float* from = residual(half);
#pragma unroll
      for (int n = 0; n < kTilesN; ++n) {
        const float2 v = load2(from + 8 * n);
        x[n][2 * half] = v.x, x[n][2 * half + 1] = v.y;
      }
    }
  }

  // The A tile k of one part of z; its rows are there up to the end of the tile.
  __device__ void load_factor(const __half* part, int k, std::uint32_t (&a)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      a[i] = *reinterpret_cast<const std::uint32_t*>(
          part + twofold_index(kWidth, row(i % 2), 16 * k + 8 * (i / 2) + 2 * (lane_ % 4)));
  }
  __device__ void add_attention(Residual& x) {
    for (int side = 0; side < 2; ++side) {
      std::uint32_t high[4][4], low[4][4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        load_factor(args_.z.high, 4 * side + k, high[k]);
        load_factor(args_.z.low, 4 * side + k, low[k]);
      }
      const Chunk chunk = stream_.next();
      if (side == 0) add_bias(x, chunk.first(), lane_ % 4);
      add_times_rows<4>(x, chunk.tiles, lane_, high, low);
    }
  }

  __device__ void add_mlp(Residual& x) {
    Factor high, low;
    for (int first = 0; first < args_.d_mlp; first += 64) {
      const Chunk in = stream_.next();
      if (first == 0)
        normalise(x, in.first(), in.second(), args_.eps, lane_ % 4, [&](int n, int half, float v0, float v1) {
          pack_twofold(v0, v1, high[n / 2][2 * (n % 2) + half], low[n / 2][2 * (n % 2) + half]);
        });
      float c[8][4];
      times_columns<8>(in, lane_, c, high, low);
      std::uint32_t hidden_high[4][4], hidden_low[4][4];
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          pack_twofold(gelu_fp32(c[n][2 * half]), gelu_fp32(c[n][2 * half + 1]),
                       hidden_high[n / 2][2 * (n % 2) + half], hidden_low[n / 2][2 * (n % 2) + half]);
      const Chunk out = stream_.next();
      if (first == 0) add_bias(x, out.first(), lane_ % 4);
      add_times_rows<4>(x, out.tiles, lane_, hidden_high, hidden_low);
    }
  }

  __device__ void store(const Residual& x) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (row(half) >= n_) continue;
      float* to = residual(half);
#pragma unroll
      for (int n = 0; n < kTilesN; ++n)
        *reinterpret_cast<float2*>(to + 8 * n) = {x[n][2 * half], x[n][2 * half + 1]};
    }
    normalise(x, args_.next_w, args_.next_b, args_.eps, lane_ % 4, [&](int n, int half, float v0, float v1) {
      if (row(half) < n_) store_twofold2(args_.y, row(half), 8 * n + 2 * (lane_ % 4), v0, v1);
    });
  }

  const TwofoldBlockArgs& args_;
  std::uint32_t n_;
  TwofoldBlockStream stream_;
  std::uint32_t tile_ = 0;
  int lane_ = threadIdx.x % 32;
};

__global__ void __launch_bounds__(32 * kTwofoldBlockWarps, 1)
    twofold_block(const __grid_constant__ TwofoldBlockArgs args) {
  extern __shared__ __align__(128) unsigned char memory[];
  const std::uint32_t n = args.n.get(), tiles = (n + kTileRows - 1) / kTileRows;
  if (blockIdx.x >= tiles) return;
  TwofoldBlock worker(args, n, *reinterpret_cast<TwofoldBlockStream::Shared*>(memory));
  for (std::uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) worker.run(tile);
}

}  // namespace deeptail::cuda
