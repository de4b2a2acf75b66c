// What becomes of products of wide models (product.cuh).
#pragma once

#include "compute_cuda/fast/tail.cuh"
#include "compute_cuda/wide/product.cuh"
#include "compute_cuda/wide/rows.cuh"

namespace deeptail::cuda {

// Rows beyond the end are computed and left out.
struct WideEpilogue {
  std::uint32_t n;
  __device__ void begin(std::uint32_t, std::uint32_t n_rows) { n = n_rows; }
  __device__ void end(std::uint32_t, int) const {}
  // visit(row, column, v0, v1) for all pairs of neighbours.
  template <class Visit>
  __device__ void for_each_pair(const float (&c)[32][4], std::uint32_t first_row, int tile,
                                const Visit& visit) const {
    const int lane = threadIdx.x % 32, column = tile * kWideColumns + 2 * (lane % 4);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t row = first_row + 8 * half + lane / 4;
      if (row >= n) continue;
#pragma unroll
      for (int i = 0; i < 32; ++i) visit(row, column + 8 * i, c[i][2 * half], c[i][2 * half + 1]);
    }
  }
};

// Rows one after the other, fp16; the first `scaled` columns times scale.
struct StoreWideRows : WideEpilogue {
  __half* out;
  int stride, scaled;
  float scale;
  __device__ void take(const float (&c)[32][4], std::uint32_t row, int tile) const {
    const float s = tile * kWideColumns < scaled ? scale : 1.0f;
    for_each_pair(c, row, tile, [&](std::uint32_t r, int k, float v0, float v1) {
      *reinterpret_cast<std::uint32_t*>(out + static_cast<std::size_t>(r) * stride + k) =
          pack(v0 * s, v1 * s);
    });
  }
};

// The same as rows that products take.
struct StoreWideTiles : WideEpilogue {
  __half* out;
  int width;
  float scale;
  __device__ void take(const float (&c)[32][4], std::uint32_t row, int tile) const {
    for_each_pair(c, row, tile, [&](std::uint32_t r, int k, float v0, float v1) {
      *reinterpret_cast<std::uint32_t*>(out + twofold_index(width, r, k)) = pack(v0 * scale, v1 * scale);
    });
  }
};

// GELU, as rows that products take.
struct StoreWideGelu : WideEpilogue {
  __half* out;
  int width;
  __device__ void take(const float (&c)[32][4], std::uint32_t row, int tile) const {
    for_each_pair(c, row, tile, [&](std::uint32_t r, int k, float v0, float v1) {
      gelu_fp16(v0, v1);
      *reinterpret_cast<std::uint32_t*>(out + twofold_index(width, r, k)) = pack(v0, v1);
    });
  }
};

struct AddWideRows : WideEpilogue {
  float* x;
  int stride;
  __device__ void take(const float (&c)[32][4], std::uint32_t row, int tile) const {
    for_each_pair(c, row, tile, [&](std::uint32_t r, int k, float v0, float v1) {
      auto* at = reinterpret_cast<float2*>(x + static_cast<std::size_t>(r) * stride + k);
      const float2 old = *at;
      *at = {old.x + v0, old.y + v1};
    });
  }
};

// Residuals of all positions, fp16.
struct AddWideTiles : WideEpilogue {
  __half* x;
  __device__ void take(const float (&c)[32][4], std::uint32_t row, int tile) const {
    for_each_pair(c, row, tile, [&](std::uint32_t r, int k, float v0, float v1) {
      const float2 old = residual2(x, r, k);
      *reinterpret_cast<std::uint32_t*>(x + twofold_index(kWideModel, r, k)) = pack(old.x + v0, old.y + v1);
    });
  }
};

// The same in the first block: what is added to is the embedding of rows[r].
struct AddToEmbedding : WideEpilogue {
  Embedding embedding;
  const std::uint32_t* rows;
  __half* x;
  __device__ void take(const float (&c)[32][4], std::uint32_t first_row, int tile) const {
    const int lane = threadIdx.x % 32, column = tile * kWideColumns + 2 * (lane % 4);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t r = first_row + 8 * half + lane / 4;
      if (r >= n) continue;
      const std::uint32_t row = rows[r];
      const float *e = embedding.w_e + static_cast<std::size_t>(embedding.row_token[row]) * kWideModel +
                       column,
                  *p = embedding.w_pos + static_cast<std::size_t>(embedding.row_position[row]) * kWideModel +
                       column;
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        const float2 u = load2(e + 8 * i), v = load2(p + 8 * i);
        *reinterpret_cast<std::uint32_t*>(x + twofold_index(kWideModel, r, column + 8 * i)) =
            pack(u.x + v.x + c[i][2 * half], u.y + v.y + c[i][2 * half + 1]);
      }
    }
  }
};

// The two largest logits of a row, without the id: which column of a lane's 64 in a tile it was is in the last six bits of the
// best, which moves it by 2^-17 of itself. Only a tile that has more than the row's second best so far is looked at closely.
struct KeepTopTwo : WideEpilogue {
  std::size_t stride;  // rows of a part
  float *best, *second;
  std::uint32_t* column;  // [parts, stride]

  struct Lane {
    float best, second, least;  // of this lane's columns; least: the row's second best
    int tile;
  } top[2];

  __device__ void begin(std::uint32_t, std::uint32_t n_rows) {
    n = n_rows;
#pragma unroll
    for (int half = 0; half < 2; ++half) top[half] = {-INFINITY, -INFINITY, -INFINITY, 0};
  }

  __device__ void take(const float (&c)[32][4], std::uint32_t, int tile) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float group[4];
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        group[part] = fmaxf(c[8 * part][2 * half], c[8 * part][2 * half + 1]);
#pragma unroll
        for (int i = 1; i < 8; ++i)
          group[part] = fmaxf(group[part], fmaxf(c[8 * part + i][2 * half], c[8 * part + i][2 * half + 1]));
      }
      const float largest = fmaxf(fmaxf(group[0], group[1]), fmaxf(group[2], group[3]));
      if (__any_sync(0xffffffffu, largest > top[half].least)) look(c, half, group, tile);
    }
  }

  __device__ void look(const float (&c)[32][4], int half, const float (&group)[4], int tile) {
    Lane& t = top[half];
    const float before = t.best;
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      if (!__any_sync(0xffffffffu, group[part] > t.least)) continue;
#pragma unroll
      for (int i = 8 * part; i < 8 * part + 8; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const float v = __int_as_float((__float_as_int(c[i][2 * half + j]) & ~63) | (2 * i + j));
          t.second = fmaxf(t.second, fminf(t.best, v));
          t.best = fmaxf(t.best, v);
        }
    }
    if (t.best != before) t.tile = tile;
    float b = t.best, s = t.second;  // of the row
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, b, step);
      s = fmaxf(fmaxf(s, __shfl_xor_sync(0xffffffffu, s, step)), fminf(b, other));
      b = fmaxf(b, other);
    }
    t.least = s;
  }

  __device__ void end(std::uint32_t first_row, int part) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = __float_as_int(top[half].best) & 63;
      TopTwo all{top[half].best, top[half].second,
                 top[half].tile * kWideColumns + at / 2 * 8 + 2 * (lane % 4) + at % 2};
#pragma unroll
      for (int step = 1; step < 4; step *= 2)
        all.merge(__shfl_xor_sync(0xffffffffu, all.best, step),
                  __shfl_xor_sync(0xffffffffu, all.second, step), __shfl_xor_sync(0xffffffffu, all.id, step));
      const std::uint32_t row = first_row + 8 * half + lane / 4;
      if (lane % 4 != 0 || row >= n) continue;
      const std::size_t to = part * stride + row;
      best[to] = all.best, second[to] = all.second, column[to] = all.id;
    }
  }
};

}  // namespace deeptail::cuda
