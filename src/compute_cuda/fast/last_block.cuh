// Attention of the last block, which only the last position needs: from the normalised rows, without keys and
// values of any of them.
//
// With rows y_j and the query q_h of head h, the score of position j is q_h . (W_K^h y_j), which is
// (W_K^hT q_h) . y_j: the query is taken back to rows (its product with b_K is the same for all positions).
// And the sum of weighted values is W_V^h of the weighted sum of rows, plus b_V. That is 1024 multiply-adds
// per row instead of 32768 for its key and value.
#pragma once

#include "compute_cuda/fast/prefix.cuh"
#include "compute_cuda/fast/tail.cuh"
#include "compute_cuda/fast/tile_attention.cuh"

namespace deeptail::cuda {

struct LastQueriesArgs {
  std::uint32_t n;
  int own;            // rows of an input in memory
  float query_scale;  // makes scores of base 2
  const __half* y;    // [n, own, 128]: stored columns (pack.h)
  const uint4* chunks;
  int n_chunks;
  __half* u;  // [n, heads, 128]: the queries, taken back to rows
};

inline constexpr int kQueryWarps = 12, kQueryRows = 16 * kQueryWarps;
using QueryStream = WeightStream<32 * kQueryWarps, 4>;

class LastQueries {
 public:
  __device__ LastQueries(const LastQueriesArgs& args, QueryStream::Shared& shared)
      : args_(args), stream_(args.chunks, args.n_chunks, shared) {}

  __device__ void run(std::uint32_t first) {
    const WarpRows at{first + 16 * (threadIdx.x / 32), args_.n, lane_};
    std::uint32_t q[kHeads][2][4];
    project(at, q);
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const Chunk chunk = stream_.next();
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        Residual u = {};
        add_times_rows<2>(u, chunk.tiles + 2 * h * kRowTiles, lane_, q[2 * side + h]);
        write(at, 2 * side + h, u);
        __syncwarp();
      }
    }
  }

 private:
  __device__ void project(const WarpRows& at, std::uint32_t (&q)[kHeads][2][4]) {
    Factor a;
    const std::size_t stride = static_cast<std::size_t>(args_.own) * kWidth;
    load_factor(args_.y + stride - kWidth, stride, at, a);
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      float c[8][4];
      times_columns<8>(stream_.next(), lane_, c, a);
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) c[n][i] *= args_.query_scale;
#pragma unroll
      for (int k = 0; k < 4; ++k) to_factor(c[2 * k], c[2 * k + 1], q[2 * side + k / 2][k % 2]);
    }
  }

  __device__ void write(const WarpRows& at, int head, const Residual& u) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (at.row(half) >= args_.n) continue;
      auto* to = reinterpret_cast<std::uint32_t*>(
                     args_.u + (static_cast<std::size_t>(at.row(half)) * kHeads + head) * kWidth) +
                 lane_ % 4;
#pragma unroll
      for (int n = 0; n < kTilesN; ++n) to[4 * n] = pack(u[n][2 * half], u[n][2 * half + 1]);
    }
  }

  const LastQueriesArgs& args_;
  QueryStream stream_;
  int lane_ = threadIdx.x % 32;
};

__global__ void __launch_bounds__(32 * kQueryWarps, 1)
    last_queries(const __grid_constant__ LastQueriesArgs args) {
  extern __shared__ __align__(128) unsigned char memory[];
  LastQueries worker(args, *reinterpret_cast<QueryStream::Shared*>(memory));
  for (std::uint32_t first = blockIdx.x * kQueryRows; first < args.n; first += gridDim.x * kQueryRows)
    worker.run(first);
}

struct LastAverageArgs {
  std::uint32_t n;
  int length;
  const std::uint32_t* rows;  // [n, length]
  Prefix prefix;
  const __half* y;   // [n, own, 128]
  const __half* u;   // [n, heads, 128]
  __half* averages;  // [n, heads, 128]: rows, weighted by attention
};

// 8 by 8 halves, of which a lane has two neighbours of row g, transposed.
__device__ inline std::uint32_t transposed(std::uint32_t matrix) {
  std::uint32_t out;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;\n" : "=r"(out) : "r"(matrix));
  return out;
}

inline constexpr int kAverageWarps = 4;
constexpr std::size_t average_shared(int tiles) {
  return sizeof(__half) * kAverageWarps * tiles * 16 * kWidth;
}

// A warp takes an input: all its rows, prefix included, kTiles tiles of 16. Columns of the scores are heads,
// four of eight.
template <int kTiles>
class LastAverage {
 public:
  __device__ LastAverage(const LastAverageArgs& args, __half* memory) : args_(args), y_{memory} {}

  __device__ void run(std::uint32_t input) {
    __syncwarp();  // the rows before may still be read
    copy_rows(input);
    std::uint32_t u[kTilesK][2];
    load_queries(input, u);
    asm volatile("cp.async.wait_all;\n");
    __syncwarp();
    float s[kTiles][4] = {};
    score(u, s);
    weigh(s);
    std::uint32_t p[kTiles][4];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      p[tile][0] = transposed(pack(s[tile][0], s[tile][1]));
      p[tile][2] = transposed(pack(s[tile][2], s[tile][3]));
      p[tile][1] = p[tile][3] = 0;  // heads 8 to 15
    }
    average(input, p);
  }

 private:
  // Rows beyond the end repeat the last one: their weight is 0, and 0 times a number is 0.
  __device__ void copy_rows(std::uint32_t input) const {
    const int n_prefix = args_.prefix.n_positions, own = args_.length - n_prefix, piece = lane_ % 16;
    const __half* first = args_.y + static_cast<std::size_t>(input) * own * kWidth;
    const __half* before = args_.prefix.last;
    if (n_prefix > 0)
      before += static_cast<std::size_t>(
                    args_.prefix.number(args_.rows + static_cast<std::size_t>(input) * args_.length)) *
                kPrefixPositions * kWidth;
#pragma unroll 4
    for (int i = 0; i < 8 * kTiles; ++i) {  // two rows at a time, sixteen lanes each
      const int to = 2 * i + lane_ / 16, row = min(to, args_.length - 1);
      const __half* from = row < n_prefix ? before + row * kWidth : first + (row - n_prefix) * kWidth;
      copy_async(y_.piece(to, piece), from + 8 * piece);
    }
  }

  // The B tiles: column g is head g.
  __device__ void load_queries(std::uint32_t input, std::uint32_t (&u)[kTilesK][2]) const {
    const int head = lane_ / 4;
    const auto* from = reinterpret_cast<const std::uint32_t*>(
                           args_.u + (static_cast<std::size_t>(input) * kHeads + head % kHeads) * kWidth) +
                       lane_ % 4;
#pragma unroll
    for (int k = 0; k < kTilesK; ++k)
#pragma unroll
      for (int i = 0; i < 2; ++i) u[k][i] = head < kHeads ? __ldg(from + 8 * k + 4 * i) : 0;
  }

  __device__ void score(const std::uint32_t (&u)[kTilesK][2], float (&s)[kTiles][4]) const {
#pragma unroll
    for (int k = 0; k < kTilesK; ++k)
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        std::uint32_t a[4];
        load_matrices(a, y_.piece(16 * tile + lane_ % 16, 2 * k + lane_ / 16));
        mma(s[tile], a, u[k][0], u[k][1]);
      }
  }

  // Scores to weights, column by column.
  __device__ void weigh(float (&s)[kTiles][4]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float largest = -INFINITY, sum = 0.0f;
#pragma unroll
      for (int j = 0; j < 2 * kTiles; ++j) {
        float& score = s[j / 2][2 * (j % 2) + i];
        if (8 * j + lane_ / 4 >= args_.length) score = -INFINITY;
        largest = fmaxf(largest, score);
      }
      for (int step = 4; step < 32; step *= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
#pragma unroll
      for (int j = 0; j < 2 * kTiles; ++j) {
        float& score = s[j / 2][2 * (j % 2) + i];
        sum += score = exp2_approx(score - largest);
      }
      for (int step = 4; step < 32; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
      const float scale = __fdividef(1.0f, sum);
#pragma unroll
      for (int j = 0; j < 2 * kTiles; ++j) s[j / 2][2 * (j % 2) + i] *= scale;
    }
  }

  __device__ void average(std::uint32_t input, const std::uint32_t (&p)[kTiles][4]) const {
    const int head = lane_ / 4;
    auto* to = reinterpret_cast<std::uint32_t*>(
                   args_.averages + (static_cast<std::size_t>(input) * kHeads + head % kHeads) * kWidth) +
               lane_ % 4;
#pragma unroll 2
    for (int pair = 0; pair < kTilesN / 2; ++pair) {
      float o[2][4] = {};
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        std::uint32_t b[4];
        load_matrices_transposed(b, y_.piece(16 * tile + lane_ % 16, 2 * pair + lane_ / 16));
        mma(o[0], p[tile], b[0], b[1]);
        mma(o[1], p[tile], b[2], b[3]);
      }
      if (head < kHeads) to[8 * pair] = pack(o[0][0], o[0][1]), to[8 * pair + 4] = pack(o[1][0], o[1][1]);
      __syncwarp();
    }
  }

  const LastAverageArgs& args_;
  MixedRows y_;  // [16 kTiles, 128], of this warp
  int lane_ = threadIdx.x % 32;
};

template <int kTiles>
__global__ void __launch_bounds__(32 * kAverageWarps, 4)
    last_average(const __grid_constant__ LastAverageArgs args) {
  extern __shared__ __align__(128) unsigned char memory[];
  const std::uint32_t warp = threadIdx.x / 32;
  LastAverage<kTiles> worker(args, reinterpret_cast<__half*>(memory) + warp * kTiles * 16 * kWidth);
  for (std::uint32_t input = blockIdx.x * kAverageWarps + warp; input < args.n;
       input += gridDim.x * kAverageWarps)
    worker.run(input);
}

}  // namespace deeptail::cuda
