// All blocks before the last one's MLP, fused: residuals stay in registers from the embedding to the end.
//
// A thread block takes as many whole inputs as fit into its rows (16 per warp); only keys and values are
// exchanged, through shared memory. The first positions of an input have no rows where they take few values:
// their keys and values are a table (prefix.cuh).
#pragma once

#include "compute_cuda/embedding.cuh"
#include "compute_cuda/prefix.cuh"
#include "compute_cuda/products.cuh"

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
  __half* z;      // [n, 128]: attention of the last block at the last position
  float* x_last;  // [n, 128]: residual there before that block
};

__device__ inline void load_matrices_transposed(std::uint32_t (&r)[4], const __half* shared_row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared_row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

// Rows of 128 halves in shared memory, in pieces of 8 whose order is mixed by the row, so that neither a
// column of rows nor a row hits a bank twice.
struct MixedRows {
  __half* data;
  __device__ __half* piece(int row, int piece) const { return data + row * kWidth + (piece ^ (row & 7)) * 8; }
};

// Shared memory of the kernel.
template <int kWarps>
struct BlocksShared {
  static constexpr int kRows = 16 * kWarps;
  using Stream = WeightStream<32 * kWarps, 4>;
  typename Stream::Shared stream;
  __half keys[kRows * kWidth], values[kRows * kWidth];
  uint4 queries[kWarps][kTilesK][32];  // [warp][k-tile][lane]: A tiles, each lane's own
};

// The rows of an m-tile, and what they see. A lane has rows g and g + 8 of it.
struct AttentionRows {
  int row0, first_key;     // of the tile; where its first input begins, rounded down to 16
  int row[2], start[2];    // of the lane: its rows, and where their inputs begin
  int n_prefix;            // keys of the prefix
  const uint4* prefix[2];  // of the tile's first and last input, this lane's, of one layer and head
  int prefix_start[2];     // where these begin
  bool two_inputs;
};

// Softmax and weighted sum over keys as they come.
struct RunningAttention {
  float o[4][4] = {}, largest[2] = {-1e30f, -1e30f}, sum[2] = {0.0f, 0.0f};

  // Turns the scores s of 8 kN keys into weights and makes room for them.
  template <int kN>
  __device__ void weigh(float (&s)[kN][4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float now = largest[half];
#pragma unroll
      for (int j = 0; j < kN; ++j) now = fmaxf(now, fmaxf(s[j][2 * half], s[j][2 * half + 1]));
      now = row_max(now);
      const float shrink = exp2_approx(largest[half] - now);
      largest[half] = now;
      sum[half] *= shrink;
#pragma unroll
      for (int n = 0; n < 4; ++n) o[n][2 * half] *= shrink, o[n][2 * half + 1] *= shrink;
#pragma unroll
      for (int j = 0; j < kN; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) sum[half] += s[j][2 * half + i] = exp2_approx(s[j][2 * half + i] - now);
    }
  }

  // As two A tiles of 16 dimensions each.
  __device__ void finish(std::uint32_t (&left)[4], std::uint32_t (&right)[4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float inverse = 1.0f / row_sum(sum[half]);
#pragma unroll
      for (int n = 0; n < 4; ++n) o[n][2 * half] *= inverse, o[n][2 * half + 1] *= inverse;
    }
    to_factor(o[0], o[1], left);
    to_factor(o[2], o[3], right);
  }
};

// The prefix of the tile's first or last input, for the rows of that input.
__device__ inline void attend_prefix(const std::uint32_t (&q)[2][4], const AttentionRows& at, int which,
                                     int t, RunningAttention& out) {
  const uint4 k = __ldg(at.prefix[which]), v = __ldg(at.prefix[which] + kPrefixValues);
  float s[1][4] = {};
  mma(s[0], q[0], k.x, k.y);
  mma(s[0], q[1], k.z, k.w);
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (2 * t + i >= at.n_prefix || at.start[half] != at.prefix_start[which])
        s[0][2 * half + i] = -INFINITY;
  out.weigh(s);
  const std::uint32_t p[2] = {pack(s[0][0], s[0][1]), pack(s[0][2], s[0][3])};
  mma_k8(out.o[0], p, v.x);
  mma_k8(out.o[1], p, v.y);
  mma_k8(out.o[2], p, v.z);
  mma_k8(out.o[3], p, v.w);
}

// Attention of a tile of rows in one head, as two A tiles of 16 dimensions each. Rows of an input see its
// prefix, and its rows up to themselves.
__device__ inline void attend(const std::uint32_t (&q)[2][4], const MixedRows& keys, const MixedRows& values,
                              const AttentionRows& at, int head, int lane, std::uint32_t (&left)[4],
                              std::uint32_t (&right)[4]) {
  const int t = lane % 4;
  RunningAttention out;
  if (at.n_prefix > 0) attend_prefix(q, at, 0, t, out);
  if (at.n_prefix > 0 && at.two_inputs) attend_prefix(q, at, 1, t, out);
  for (int key0 = at.first_key; key0 <= at.row0; key0 += 16) {
    float s[2][4] = {};
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      std::uint32_t b[4];
      load_matrices(b, keys.piece(key0 + 8 * j + lane % 8, 4 * head + lane / 8));
      mma(s[j], q[0], b[0], b[1]);
      mma(s[j], q[1], b[2], b[3]);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int key = key0 + 8 * j + 2 * t + i;
          if (key < at.start[half] || key > at.row[half]) s[j][2 * half + i] = -INFINITY;
        }
    out.weigh(s);
    std::uint32_t p[4];
    to_factor(s[0], s[1], p);
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      std::uint32_t b[4];
      load_matrices_transposed(
          b, values.piece(key0 + (lane / 8 % 2) * 8 + lane % 8, 4 * head + 2 * pair + lane / 16));
      mma(out.o[2 * pair], p, b[0], b[1]);
      mma(out.o[2 * pair + 1], p, b[2], b[3]);
    }
  }
  out.finish(left, right);
}

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
        stream_(args.chunks, args.n_chunks, shared.stream) {}

  // Inputs [first, first + those that fit).
  __device__ void run(std::uint32_t first) {
    first_input_ = first;
    find_prefixes();
    Residual x;
    embed(x);
    for (int layer = 0; layer < args_.n_layers; ++layer) {
      const bool last = layer + 1 == args_.n_layers;
      __syncthreads();  // the keys and values before may still be read
      if (layer == 0)
        first_layer();
      else
        project(x);
      asm volatile("cp.async.wait_all;\n");
      __syncthreads();
      if (last) {
        write_last(x, layer);
      } else {
        add_attention(x, layer);
        mlp(x, args_.eps, args_.d_mlp, stream_, lane_);
      }
    }
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

  // The prefixes of the first and the last input that the warp's rows belong to.
  __device__ void find_prefixes() {
    if (args_.prefix.n_positions == 0) return;
    prefix_[0] = args_.prefix.number(input(kWarpRows * warp_ / own_));
    prefix_[1] = args_.prefix.number(input((kWarpRows * warp_ + kWarpRows - 1) / own_));
  }
  __device__ AttentionRows attention_rows(int layer, int head) const {
    AttentionRows at;
    at.row0 = kWarpRows * warp_;
    at.prefix_start[0] = at.row0 / own_ * own_;
    at.prefix_start[1] = (at.row0 + kWarpRows - 1) / own_ * own_;
    at.first_key = at.prefix_start[0] & ~15;
    at.two_inputs = at.prefix_start[0] != at.prefix_start[1];
    at.n_prefix = args_.prefix.n_positions;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      at.row[half] = own_row(half);
      at.start[half] = at.row[half] / own_ * own_;
      at.prefix[half] = args_.prefix.keys(layer, prefix_[half], head) + lane_;
    }
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
  __device__ void attend_head(int layer, int head, std::uint32_t (&z)[2][4]) const {
    std::uint32_t q[2][4];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const uint4 a = shared_.queries[warp_][2 * head + k][lane_];
      q[k][0] = a.x, q[k][1] = a.y, q[k][2] = a.z, q[k][3] = a.w;
    }
    attend(q, keys_, values_, attention_rows(layer, head), head, lane_, z[0], z[1]);
  }

  __device__ void add_attention(Residual& x, int layer) {
    for (int side = 0; side < 2; ++side) {
      const Chunk chunk = stream_.next();
      if (side == 0) add_bias(x, chunk.first(), lane_ % 4);
      for (int h = 0; h < 2; ++h) {
        std::uint32_t z[2][4];
        attend_head(layer, 2 * side + h, z);
        add_times_rows<2>(x, chunk.tiles + 2 * h * kRowTiles, lane_, z);
      }
    }
  }

  __device__ bool is_last_position(int r) const { return r % own_ == own_ - 1; }
  // The number of the input that row r belongs to; n or more for none.
  __device__ std::uint32_t input_of(int r) const {
    const int i = r / own_;
    return (i + 1) * own_ <= Shared::kRows ? first_input_ + i : args_.n;
  }

  __device__ void write_last(const Residual& x, int layer) {
    const int row0 = kWarpRows * warp_;
    if ((row0 / own_ + 1) * own_ - 1 >= row0 + kWarpRows) return;  // no input ends here
    for (int head = 0; head < kHeads; ++head) {
      std::uint32_t z[2][4];
      attend_head(layer, head, z);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int r = own_row(half);
        if (!is_last_position(r) || input_of(r) >= args_.n) continue;
        auto* to = reinterpret_cast<std::uint32_t*>(args_.z + static_cast<std::size_t>(input_of(r)) * kWidth +
                                                    32 * head) +
                   lane_ % 4;
#pragma unroll
        for (int k = 0; k < 2; ++k) to[8 * k] = z[k][half], to[8 * k + 4] = z[k][2 + half];
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = own_row(half);
      if (!is_last_position(r) || input_of(r) >= args_.n) continue;
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
  std::uint32_t first_input_ = 0, prefix_[2] = {0, 0};
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
