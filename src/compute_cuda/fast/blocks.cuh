// All blocks before the last one, fused: residuals stay in registers from the embedding to the end, and leave
// as what the last block's norm makes of them (last_block.cuh goes on).
//
// A thread block takes as many whole inputs as fit into its rows (16 per warp); only keys and values are
// exchanged, through shared memory. The first positions of an input have no rows where they take few values:
// their keys and values are a table (prefix.cuh).
#pragma once

#include "compute_cuda/fast/tile_attention.cuh"
#include "compute_cuda/tiles/embedding.cuh"
#include "compute_cuda/tiles/products.cuh"

namespace deeptail::cuda {

struct BlocksArgs {
  std::uint32_t n;  // inputs
  int length, n_layers, d_mlp;
  float eps, query_scale;
  Embedding embedding;
  const std::uint32_t* rows;  // [n, length]
  Prefix prefix;
  const __half* first;  // [rows, 384]: first-layer queries (scaled), keys, values
  const uint4* chunks;  // the weight stream
  int n_chunks;
  const float *ln_w, *ln_b;  // [128]: the last block's norm
  __half* y;                 // [n, own rows, 128]: normalised residuals, stored columns (pack.h)
  float* x_last;             // [n, 128]: residuals at the last position
};

// Shared memory of the kernel.
template <int kWarps>
struct BlocksShared {
  static constexpr int kRows = 16 * kWarps;
  using Stream = WeightStream<32 * kWarps, 4>;
  typename Stream::Shared stream;
  __half keys[kRows * kWidth], values[kRows * kWidth];
  uint4 queries[kWarps][kTilesK][32];  // [warp][k-tile][lane]: A tiles, each lane's own
  int2 starts[32 * kWarps];
  std::uint32_t prefix[kWarps][2];
};

template <int kWarps>
class BlocksWorker {
 public:
  using Shared = BlocksShared<kWarps>;

  __device__ BlocksWorker(const BlocksArgs& args, Shared& shared)
      : args_(args),
        shared_(shared),
        keys_{shared.keys},
        values_{shared.values},
        own_(args.length - args.prefix.n_positions),
        stream_(args.chunks, args.n_chunks, shared.stream) {
    find_starts();
  }

  // Inputs [first, first + those that fit).
  __device__ void run(std::uint32_t first) {
    first_input_ = first;
    find_prefixes();
    Residual x;
    embed(x);
    for (int layer = 0; layer + 1 < args_.n_layers; ++layer) {
      __syncthreads();  // the keys and values before may still be read
      if (layer == 0)
        first_layer();
      else
        project(x);
      asm volatile("cp.async.wait_all;\n");
      __syncthreads();
      add_attention(x, layer);
      mlp(x, args_.eps, args_.d_mlp, stream_, lane_);
    }
    write(x);
  }

 private:
  static constexpr int kWarpRows = 16;
  // Inputs beyond the end repeat the last one.
  __device__ const std::uint32_t* input(int i) const {
    return args_.rows + static_cast<std::size_t>(min(first_input_ + i, args_.n - 1)) * args_.length;
  }
  // The (position, token) pair of row r of the thread block.
  __device__ std::uint32_t input_row(int r) const {
    return input(r / own_)[args_.prefix.n_positions + r % own_];
  }
  __device__ int own_row(int half) const { return kWarpRows * warp_ + 8 * half + lane_ / 4; }

  // What attention needs to know of the rows, out of the registers' way: where their inputs begin, which
  // stays, and the prefixes of the first and the last input of the warp.
  __device__ void find_starts() {
    shared_.starts[threadIdx.x] = {own_row(0) / own_ * own_, own_row(1) / own_ * own_};
  }
  __device__ void find_prefixes() {
    __syncwarp();  // those before may still be read
    if (args_.prefix.n_positions == 0 || lane_ > 1) return;
    const int row = kWarpRows * warp_ + lane_ * (kWarpRows - 1);
    shared_.prefix[warp_][lane_] = args_.prefix.number(input(row / own_));
  }
  __device__ AttentionRows attention_rows(int layer, int head) const {
    const int2 starts = shared_.starts[threadIdx.x];
    AttentionRows at{.row0 = kWarpRows * warp_,
                     .row = {own_row(0), own_row(1)},
                     .start = {starts.x, starts.y},
                     .first_start = __shfl_sync(0xffffffffu, starts.x, 0),
                     .last_start = __shfl_sync(0xffffffffu, starts.y, 31),
                     .n_prefix = args_.prefix.n_positions,
                     .prefix = {}};
#pragma unroll
    for (int i = 0; i < 2; ++i)
      at.prefix[i] = args_.prefix.keys(layer, shared_.prefix[warp_][i], head) + lane_;
    return at;
  }

  __device__ void embed(Residual& x) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t row = input_row(own_row(half));
      const float* e =
          args_.embedding.w_e + static_cast<std::size_t>(args_.embedding.row_token[row]) * kWidth;
      const float* p = args_.embedding.w_pos + args_.embedding.row_position[row] * kWidth;
#pragma unroll
      for (int n = 0; n < kTilesN; ++n) {
        const float2 a = load2(e + 8 * n + 2 * (lane_ % 4)), b = load2(p + 8 * n + 2 * (lane_ % 4));
        x[n][2 * half] = a.x + b.x;
        x[n][2 * half + 1] = a.y + b.y;
      }
    }
  }

  // Keys and values from the table; queries as well, into the lanes that use them.
  __device__ void first_layer() {
    const std::uint32_t own = input_row(kWarpRows * warp_ + lane_ % kWarpRows);
#pragma unroll
    for (int i = 0; i < kWarpRows; i += 2) {  // two rows at a time, sixteen lanes each
      const int r = kWarpRows * warp_ + i + lane_ / 16, piece = lane_ % 16;
      const __half* from = args_.first +
                           static_cast<std::size_t>(__shfl_sync(0xffffffffu, own, i + lane_ / 16)) * 384 +
                           8 * piece;
      copy_async(keys_.piece(r, piece), from + 128);
      copy_async(values_.piece(r, piece), from + 256);
    }
    const __half* from[2];
#pragma unroll
    for (int half = 0; half < 2; ++half)
      from[half] = args_.first + static_cast<std::size_t>(input_row(own_row(half))) * 384 + 2 * (lane_ % 4);
#pragma unroll
    for (int tile = 0; tile < kTilesK; ++tile) {
      const auto at = [&](int half, int column) {
        return __ldg(reinterpret_cast<const std::uint32_t*>(from[half] + 16 * tile + column));
      };
      shared_.queries[warp_][tile][lane_] = {at(0, 0), at(1, 0), at(0, 8), at(1, 8)};
    }
  }

  // Keys, values and queries of the residuals: six chunks of 64 columns, in this order; the first brings ln1.
  __device__ void project(const Residual& x) {
    Factor a;
    for (int part = 0; part < 3; ++part)
      for (int side = 0; side < 2; ++side) {
        const Chunk chunk = stream_.next();
        if (part == 0 && side == 0) layernorm(x, chunk.first(), chunk.second(), args_.eps, lane_ % 4, a);
        float c[8][4];
        times_columns<8>(chunk, lane_, c, a);
        if (part == 2)
          keep_queries(c, 4 * side);
        else
          store(c, part == 0 ? keys_ : values_, 8 * side);
      }
  }
  // Eight C tiles as the pieces from `first` on of the warp's rows.
  __device__ void store(const float (&c)[8][4], const MixedRows& to, int first) const {
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<std::uint32_t*>(to.piece(own_row(half), first + n) + 2 * (lane_ % 4)) =
            pack(c[n][2 * half], c[n][2 * half + 1]);
  }
  __device__ void keep_queries(float (&c)[8][4], int first) {
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) c[n][i] *= args_.query_scale;
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) {
      std::uint32_t a[4];
      to_factor(c[2 * tile], c[2 * tile + 1], a);
      shared_.queries[warp_][first + tile][lane_] = {a[0], a[1], a[2], a[3]};
    }
  }

  // One head of the warp's rows, as two A tiles.
  __device__ void attend(int layer, int head, std::uint32_t (&z)[2][4]) const {
    const AttentionRows at = attention_rows(layer, head);
    TileAttention(&shared_.queries[warp_][2 * head][lane_], keys_, values_, at, head, lane_).run(z);
  }

  __device__ void add_attention(Residual& x, int layer) {
    for (int side = 0; side < 2; ++side) {
      const Chunk chunk = stream_.next();
      if (side == 0) add_bias(x, chunk.first(), lane_ % 4);
      for (int h = 0; h < 2; ++h) {
        std::uint32_t z[2][4];
        attend(layer, 2 * side + h, z);
        add_times_rows<2>(x, chunk.tiles + 2 * h * kRowTiles, lane_, z);
      }
    }
  }

  // The number of the input that row r belongs to; n or more for none.
  __device__ std::uint32_t input_of(int r) const {
    const int i = r / own_;
    return (i + 1) * own_ <= Shared::kRows ? first_input_ + i : args_.n;
  }

  __device__ void write(const Residual& x) const {
    write_residuals(x);
    Factor y;
    layernorm(x, args_.ln_w, args_.ln_b, args_.eps, lane_ % 4, y);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = own_row(half);
      if (input_of(r) >= args_.n) continue;
      auto* to =
          reinterpret_cast<uint4*>(args_.y + (static_cast<std::size_t>(first_input_) * own_ + r) * kWidth) +
          4 * (lane_ % 4);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        to[k] = {y[2 * k][half], y[2 * k][2 + half], y[2 * k + 1][half], y[2 * k + 1][2 + half]};
    }
  }
  __device__ void write_residuals(const Residual& x) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = own_row(half);
      if (r % own_ + 1 != own_ || input_of(r) >= args_.n) continue;
      float* to = args_.x_last + static_cast<std::size_t>(input_of(r)) * kWidth + 2 * (lane_ % 4);
#pragma unroll
      for (int n = 0; n < kTilesN; ++n)
        *reinterpret_cast<float2*>(to + 8 * n) = {x[n][2 * half], x[n][2 * half + 1]};
    }
  }

  const BlocksArgs& args_;
  Shared& shared_;
  MixedRows keys_, values_;
  int own_;  // rows of an input
  typename Shared::Stream stream_;
  std::uint32_t first_input_ = 0;
  int warp_ = threadIdx.x / 32, lane_ = threadIdx.x % 32;
};

template <int kWarps>
__global__ void __launch_bounds__(32 * kWarps, 1) blocks(const __grid_constant__ BlocksArgs args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr bool kUsed = kWarps == 12;  // there is always room for twelve
#else
  constexpr bool kUsed = true;
#endif
  if constexpr (kUsed) {
    extern __shared__ __align__(128) unsigned char memory[];
    auto& shared = *reinterpret_cast<BlocksShared<kWarps>*>(memory);
    const std::uint32_t fit = BlocksShared<kWarps>::kRows / (args.length - args.prefix.n_positions);
    BlocksWorker<kWarps> worker(args, shared);
    for (std::uint32_t first = blockIdx.x * fit; first < args.n; first += gridDim.x * fit) worker.run(first);
  }
}

}  // namespace deeptail::cuda
