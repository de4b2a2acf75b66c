// Attention among rows of keys and values in shared memory, 16 rows and one head at a time, by mma.sync.
#pragma once

#include "compute_cuda/fast/prefix.cuh"
#include "compute_cuda/tiles/fragments.cuh"

namespace deeptail::cuda {

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

// The rows of an m-tile, and what they see. A lane has rows g and g + 8 of it.
struct AttentionRows {
  int row0;                     // of the tile
  int row[2], start[2];         // of the lane: its rows, and where their inputs begin
  int first_start, last_start;  // where the tile's first and last input begin
  int n_prefix;                 // keys of the prefix
  const uint4* prefix[2];       // of these two inputs, this lane's, of one layer and head
};

// Softmax and weighted sum over keys as they come, of one head.
struct RunningAttention {
  float o[4][4] = {}, largest[2] = {-1e30f, -1e30f}, sum[2] = {0.0f, 0.0f};

  // Turns the scores s of 8 kN keys into weights and makes room for them.
  template <bool kFirst, int kN>
  __device__ void weigh(float (&s)[kN][4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float now = largest[half];
#pragma unroll
      for (int j = 0; j < kN; ++j) now = fmaxf(now, fmaxf(s[j][2 * half], s[j][2 * half + 1]));
      now = row_max(now);
      if constexpr (!kFirst) shrink(half, exp2_approx(largest[half] - now));
      largest[half] = now;
#pragma unroll
      for (int j = 0; j < kN; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) sum[half] += s[j][2 * half + i] = exp2_approx(s[j][2 * half + i] - now);
    }
  }
  __device__ void shrink(int half, float factor) {
    sum[half] *= factor;
#pragma unroll
    for (int n = 0; n < 4; ++n) o[n][2 * half] *= factor, o[n][2 * half + 1] *= factor;
  }

  // As two A tiles of 16 dimensions each.
  __device__ void finish(std::uint32_t (&z)[2][4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) shrink(half, __fdividef(1.0f, row_sum(sum[half])));
    to_factor(o[0], o[1], z[0]);
    to_factor(o[2], o[3], z[1]);
  }
};

// Attention of a tile of rows in one head. Rows of an input see its prefix, and its rows up to themselves.
class TileAttention {
 public:
  // queries: the two A tiles of the head, this lane's, 512 bytes apart.
  __device__ TileAttention(const uint4* queries, const MixedRows& keys, const MixedRows& values,
                           const AttentionRows& at, int head, int lane)
      : queries_(static_cast<std::uint32_t>(__cvta_generic_to_shared(queries))),
        keys_(keys),
        values_(values),
        at_(at),
        head_(head),
        lane_(lane) {}

  __device__ void run(std::uint32_t (&z)[2][4]) {
    const int first_key = at_.first_start & ~15;
    if (at_.n_prefix > 0) {
      add_keys<true, true>(first_key);
      if (at_.first_start != at_.last_start) add_prefix();
    } else {
      add_keys<true, false>(first_key);
    }
    for (int key0 = first_key + 16; key0 <= at_.row0; key0 += 16) add_keys<false, false>(key0);
    out_.finish(z);
  }

 private:
  // Read each time, since there are no registers to keep them.
  __device__ void load_queries(std::uint32_t (&q)[2][4]) const {
#pragma unroll
    for (int k = 0; k < 2; ++k)
      asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];\n"
                   : "=r"(q[k][0]), "=r"(q[k][1]), "=r"(q[k][2]), "=r"(q[k][3])
                   : "r"(queries_ + 512 * k));
  }

  // Scores of the prefix of the tile's first or last input, for the rows of that input.
  __device__ void score_prefix(int which, const std::uint32_t (&q)[2][4], float (&s)[4]) const {
    const uint4 k = __ldg(at_.prefix[which]);
    mma(s, q[0], k.x, k.y);
    mma(s, q[1], k.z, k.w);
    const int start = which == 0 ? at_.first_start : at_.last_start;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (2 * (lane_ % 4) + i % 2 >= at_.n_prefix || at_.start[i / 2] != start) s[i] = -INFINITY;
  }
  __device__ void take_prefix(int which, const float (&s)[4]) {
    const uint4 v = __ldg(at_.prefix[which] + kPrefixValues);
    const std::uint32_t p[2] = {pack(s[0], s[1]), pack(s[2], s[3])};
    mma_k8(out_.o[0], p, v.x);
    mma_k8(out_.o[1], p, v.y);
    mma_k8(out_.o[2], p, v.z);
    mma_k8(out_.o[3], p, v.w);
  }
  // The prefix of the last input.
  __device__ void add_prefix() {
    std::uint32_t q[2][4];
    float s[1][4] = {};
    load_queries(q);
    score_prefix(1, q, s[0]);
    out_.weigh<false>(s);
    take_prefix(1, s[0]);
  }

  // Keys [key0, key0 + 16) of the thread block, and the prefix of the first input with them.
  template <bool kFirst, bool kWithPrefix>
  __device__ void add_keys(int key0) {
    float s[kWithPrefix ? 3 : 2][4] = {};
    std::uint32_t q[2][4];
    load_queries(q);
    if constexpr (kWithPrefix) score_prefix(0, q, s[2]);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      std::uint32_t b[4];
      load_matrices(b, keys_.piece(key0 + 8 * j + lane_ % 8, 4 * head_ + lane_ / 8));
      mma(s[j], q[0], b[0], b[1]);
      mma(s[j], q[1], b[2], b[3]);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = key0 + 8 * j + 2 * (lane_ % 4) + i % 2;
        if (key < at_.start[i / 2] || key > at_.row[i / 2]) s[j][i] = -INFINITY;
      }
    }
    out_.weigh<kFirst>(s);
    if constexpr (kWithPrefix) take_prefix(0, s[2]);
    take_values(key0, s[0], s[1]);
  }
  __device__ void take_values(int key0, const float (&left)[4], const float (&right)[4]) {
    std::uint32_t p[4];
    to_factor(left, right, p);
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      std::uint32_t b[4];
      load_matrices_transposed(
          b, values_.piece(key0 + (lane_ / 8 % 2) * 8 + lane_ % 8, 4 * head_ + 2 * pair + lane_ / 16));
      mma(out_.o[2 * pair], p, b[0], b[1]);
      mma(out_.o[2 * pair + 1], p, b[2], b[3]);
    }
  }

  std::uint32_t queries_;  // in shared memory
  const MixedRows &keys_, &values_;
  const AttentionRows& at_;
  int head_, lane_;
  RunningAttention out_;
};

}  // namespace deeptail::cuda
