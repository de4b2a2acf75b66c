// A tiles in registers times weights in shared memory.
//
// On Hopper by wgmma: four warps together read a tile once. Elsewhere by mma.sync, every warp for itself. The
// two want the weights in different orders (pack.h).
#pragma once

#include "compute_cuda/tiles/fragments.cuh"
#include "compute_cuda/tiles/weight_stream.cuh"

namespace deeptail::cuda {

template <int kTiles>
__device__ inline void start_with_biases(const Chunk& chunk, int lane, float (&c)[kTiles][4]) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
    const float2 b = load2(chunk.biases() + 8 * n + 2 * (lane % 4));
    c[n][0] = c[n][2] = b.x, c[n][1] = c[n][3] = b.y;
  }
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Shared memory as wgmma takes it, without swizzle: core matrices of 8 columns by 8 rows (each column's 8 in
// a run), 128 bytes; the next 8 columns follow at once, the next 8 rows after k_stride bytes.
__device__ inline std::uint64_t weights_at(const void* shared, int k_stride) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  return static_cast<std::uint64_t>((address & 0x3ffffu) >> 4) |
         static_cast<std::uint64_t>(k_stride >> 4) << 16 | static_cast<std::uint64_t>(128 >> 4) << 32;
}
__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
__device__ inline void finish_products() {
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
}
__device__ inline void wgmma(float (&c)[8][4], const std::uint32_t (&a)[4], std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
      "{%32,%33,%34,%35}, %36, 1, 1, 1, 0;\n"
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]),
        "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),
        "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]),
        "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),
        "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]),
        "+f"(c[7][2]), "+f"(c[7][3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
__device__ inline void wgmma(float (&c)[16][4], const std::uint32_t (&a)[4], std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
      "{%64,%65,%66,%67}, %68, 1, 1, 1, 0;\n"
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]),
        "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),
        "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]),
        "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),
        "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]),
        "+f"(c[7][2]), "+f"(c[7][3]), "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]), "+f"(c[8][3]),
        "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]), "+f"(c[10][0]), "+f"(c[10][1]),
        "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]), "+f"(c[11][3]),
        "+f"(c[12][0]), "+f"(c[12][1]), "+f"(c[12][2]), "+f"(c[12][3]), "+f"(c[13][0]), "+f"(c[13][1]),
        "+f"(c[13][2]), "+f"(c[13][3]), "+f"(c[14][0]), "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]),
        "+f"(c[15][0]), "+f"(c[15][1]), "+f"(c[15][2]), "+f"(c[15][3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// c = bias + the sum of the factors a times the chunk's columns, 8 kTiles of them, 128 rows. Several factors
// are the parts of one.
template <int kTiles, class... Factors>
__device__ inline void times_columns(const Chunk& chunk, int lane, float (&c)[kTiles][4],
                                     const Factors&... a) {
  start_with_biases(chunk, lane, c);
  constexpr int kStride = 128 * kTiles;
  const auto* tiles = reinterpret_cast<const unsigned char*>(chunk.tiles);
  begin_products();
#pragma unroll
  for (int k = 0; k < kTilesK; ++k) (wgmma(c, a[k], weights_at(tiles + 2 * k * kStride, kStride)), ...);
  finish_products();
}

// x += kK A tiles times 16 kK rows of 128 columns, of every factor.
template <int kK, class... Factors>
__device__ inline void add_times_rows(Residual& x, const uint4* rows, int, const Factors&... a) {
  constexpr int kStride = 128 * kTilesN;
  const auto* tiles = reinterpret_cast<const unsigned char*>(rows);
  begin_products();
#pragma unroll
  for (int k = 0; k < kK; ++k) (wgmma(x, a[k], weights_at(tiles + 2 * k * kStride, kStride)), ...);
  finish_products();
}

#else

template <int kTiles, class... Factors>
__device__ inline void times_columns(const Chunk& chunk, int lane, float (&c)[kTiles][4],
                                     const Factors&... a) {
  start_with_biases(chunk, lane, c);
#pragma unroll
  for (int kk = 0; kk < kTilesK / 2; ++kk)
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      const uint4 b = chunk.tiles[(n * (kTilesK / 2) + kk) * 32 + lane];
      (mma(c[n], a[2 * kk], b.x, b.y), ...);
      (mma(c[n], a[2 * kk + 1], b.z, b.w), ...);
    }
}

template <int kK, class... Factors>
__device__ inline void add_times_rows(Residual& x, const uint4* rows, int lane, const Factors&... a) {
#pragma unroll
  for (int k = 0; k < kK; ++k)
#pragma unroll
    for (int pair = 0; pair < kTilesN / 2; ++pair) {
      const uint4 b = rows[(k * kTilesN / 2 + pair) * 32 + lane];
      (mma(x[2 * pair], a[k], b.x, b.y), ...);
      (mma(x[2 * pair + 1], a[k], b.z, b.w), ...);
    }
}

#endif

inline constexpr int kRowTiles = kTilesN / 2 * 32;  // uint4 of 16 rows

// x += W_out gelu(W_in ln2(x) + b_in) + b_out, 64 hidden units at a time, which never leave the registers: a
// chunk with their columns of W_in, then one with their rows of W_out. The first two bring ln2 and b_out.
template <class Stream>
__device__ inline void mlp(Residual& x, float eps, int d_mlp, Stream& stream, int lane) {
  Factor a;
  for (int first = 0; first < d_mlp; first += 64) {
    const Chunk in = stream.next();
    if (first == 0) layernorm(x, in.first(), in.second(), eps, lane % 4, a);
    float c[8][4];
    times_columns<8>(in, lane, c, a);
    std::uint32_t hidden[4][4];
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      gelu_fp16(c[n][0], c[n][1]);
      gelu_fp16(c[n][2], c[n][3]);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) to_factor(c[2 * k], c[2 * k + 1], hidden[k]);
    const Chunk out = stream.next();
    if (first == 0) add_bias(x, out.first(), lane % 4);
    add_times_rows<4>(x, out.tiles, lane, hidden);
  }
}

}  // namespace deeptail::cuda
