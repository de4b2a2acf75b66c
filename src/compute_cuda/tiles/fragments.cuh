// Tensor-core products on register fragments, fp16 in, fp32 out.
//
// A warp owns 16 rows. With g = lane / 4 and t = lane % 4, a lane holds rows g and g + 8, and
//   C tile [16, 8]:   c0, c1 = (g, 2t), (g, 2t + 1);  c2, c3 = the same of row g + 8
//   A tile [16, 16]:  a0 = (g, 2t..), a1 = (g + 8, 2t..), a2 = (g, 2t + 8..), a3 = (g + 8, 2t + 8..), pairs
//   of halves
// Two neighbouring C tiles, rounded to fp16, are one A tile: results become factors without leaving
// registers. products.cuh multiplies them by weights from shared memory.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace deeptail::cuda {

inline constexpr int kWidth = 128;           // d_model = d_attn of the fast kernels
inline constexpr int kHeads = 4;             // heads of 32
inline constexpr int kTilesN = kWidth / 8;   // C tiles of a row
inline constexpr int kTilesK = kWidth / 16;  // A tiles of a row

// What a warp holds of its rows of 128.
using Residual = float[kTilesN][4];
using Factor = std::uint32_t[kTilesK][4];

__device__ inline void mma(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The same with half as many columns of a and rows of b.
__device__ inline void mma_k8(float (&c)[4], const std::uint32_t (&a)[2], std::uint32_t b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
}

// Four 8 by 8 matrices of halves; lane l gives the address of row l % 8 of matrix l / 8.
__device__ inline void load_matrices(std::uint32_t (&r)[4], const __half* shared_row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared_row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

__device__ inline std::uint32_t pack(float low, float high) {
  const __half2 h = __floats2half2_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&h);
}

// Two C tiles as one A tile.
__device__ inline void to_factor(const float (&left)[4], const float (&right)[4], std::uint32_t (&a)[4]) {
  a[0] = pack(left[0], left[1]);
  a[1] = pack(left[2], left[3]);
  a[2] = pack(right[0], right[1]);
  a[3] = pack(right[2], right[3]);
}

// Sum over the four lanes that share a row.
__device__ inline float row_sum(float v) {
  v += __shfl_xor_sync(0xffffffffu, v, 1);
  return v + __shfl_xor_sync(0xffffffffu, v, 2);
}
__device__ inline float row_max(float v) {
  v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 1));
  return fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 2));
}

__device__ inline float2 load2(const float* p) { return *reinterpret_cast<const float2*>(p); }

// Layer norm of the rows x: emit(n, half, v0, v1) gets each pair of neighbours in C tile n. weight, bias:
// [128].
template <class Emit>
__device__ inline void normalise(const Residual& x, const float* weight, const float* bias, float eps, int t,
                                 const Emit& emit) {
  float mean[2], scale[2];  // of rows g and g + 8
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = 0.0f;
#pragma unroll
    for (int n = 0; n < kTilesN; ++n) sum += x[n][2 * half] + x[n][2 * half + 1];
    mean[half] = row_sum(sum) / kWidth;
    float squares = 0.0f;
#pragma unroll
    for (int n = 0; n < kTilesN; ++n) {
      const float u = x[n][2 * half] - mean[half], v = x[n][2 * half + 1] - mean[half];
      squares = fmaf(u, u, fmaf(v, v, squares));
    }
    scale[half] = rsqrtf(row_sum(squares) / kWidth + eps);
  }
#pragma unroll
  for (int n = 0; n < kTilesN; ++n) {
    const float2 w = load2(weight + 8 * n + 2 * t), b = load2(bias + 8 * n + 2 * t);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      emit(n, half, fmaf((x[n][2 * half] - mean[half]) * scale[half], w.x, b.x),
           fmaf((x[n][2 * half + 1] - mean[half]) * scale[half], w.y, b.y));
  }
}

// a = layer norm of the rows x, in fp16.
__device__ inline void layernorm(const Residual& x, const float* weight, const float* bias, float eps, int t,
                                 Factor& a) {
  normalise(x, weight, bias, eps, t,
            [&](int n, int half, float v0, float v1) { a[n / 2][2 * (n % 2) + half] = pack(v0, v1); });
}

__device__ inline void add_bias(Residual& x, const float* bias, int t) {
#pragma unroll
  for (int n = 0; n < kTilesN; ++n) {
    const float2 b = load2(bias + 8 * n + 2 * t);
    x[n][0] += b.x, x[n][1] += b.y;
    x[n][2] += b.x, x[n][3] += b.y;
  }
}

__device__ inline float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// GELU of x and y to 2.5e-5, a tenth of what rounding it to fp16 costs: x / (1 + 2^(-x P(x^2))), P fitted to
// the normal distribution function's log odds. The two share a reciprocal, since exponentials and
// reciprocals take longer than the products around them.
__device__ inline float gelu_divisor(float x) {
  const float u = fminf(x * x, 50.0f);
  const float p = fmaf(fmaf(-1.01426330e-03f, u, 1.06775726e-01f), u, 2.30112134f);
  return 1.0f + exp2_approx(fminf(-x * p, 60.0f));  // two of them must not overflow
}
__device__ inline void gelu_fp16(float& x, float& y) {
  const float a = gelu_divisor(x), b = gelu_divisor(y);
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(a * b));
  x *= inverse * b;
  y *= inverse * a;
}

// GELU to 8e-7, as above with a longer P (fitted to 7e-8).
__device__ inline float gelu_fp32(float x) {
  const float u = fminf(x * x, 36.0f);
  float p = 5.209909393e-09f;
  p = fmaf(p, u, -3.850450128e-07f);
  p = fmaf(p, u, 1.145243004e-05f);
  p = fmaf(p, u, -1.593894121e-04f);
  p = fmaf(p, u, -9.559292812e-05f);
  p = fmaf(p, u, 1.048385799e-01f);
  p = fmaf(p, u, 2.302207232e+00f);
  return __fdividef(x, 1.0f + exp2_approx(-x * p));
}

}  // namespace deeptail::cuda
