// The same model in fp32, for the inputs whose two best logits are too close for fp16: simple, and some ten
// times slower per input, which does not matter for one in a hundred.
#pragma once

#include "compute_cuda/first_layer.cuh"
#include "compute_cuda/last_attention.cuh"
#include "compute_cuda/tail.cuh"

namespace deeptail::cuda {

// A block in fp32; matrices row-major [in, out].
struct ExactBlock {
  const float *ln1_w, *ln1_b, *b_qkv, *b_o, *ln2_w, *ln2_b, *b_in, *b_out;
  const float *w_qkv, *w_o, *w_in, *w_out;
};

struct ExactArgs {
  int length, n_layers, d_mlp, n_columns;
  float eps, score_scale;
  Embedding embedding;
  const std::uint32_t* rows;                         // [n, length]
  const float* first;                                // [rows, 384], unscaled
  const ExactBlock* blocks;                          // [n_layers]
  const float *ln_final_w, *ln_final_b, *w_u, *b_u;  // w_u: [128, n_columns]
  InputList list;
  float *z, *x_last;  // [of the listed inputs, 128]
  Verdicts verdicts;
};

inline constexpr int kExactThreads = 128;
inline constexpr int kRowGroup = 12;  // rows whose sums a thread keeps at a time

__host__ __device__ inline int exact_rows(int length) {
  return (length + kRowGroup - 1) / kRowGroup * kRowGroup;
}
inline std::size_t exact_shared_bytes(int length) {
  return sizeof(float) * exact_rows(length) * (128 + 128 + 384);
}

// sums[c][r] += a[r] . column c of w, 128 columns apart, for kColumns of them: what a row costs to read is
// shared.
template <int kColumns, int kRows>
__device__ inline void dot_columns(const float* a, const float* w, int n_columns,
                                   float (&sums)[kColumns][kRows]) {
  for (int k = 0; k < 128; k += 4) {
    float v[kColumns][4];
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
#pragma unroll
      for (int i = 0; i < 4; ++i) v[c][i] = __ldg(w + static_cast<std::size_t>(k + i) * n_columns + 128 * c);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float4 u = *reinterpret_cast<const float4*>(a + r * 128 + k);
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
        sums[c][r] =
            fmaf(u.w, v[c][3], fmaf(u.z, v[c][2], fmaf(u.y, v[c][1], fmaf(u.x, v[c][0], sums[c][r]))));
    }
  }
}

// sums[r] += a[r0 + r] . column of w, r < kRows; a: shared, [.., stride]; w: the column's first element, next
// row n_columns on. Sequential in k, as on the CPU.
template <int kRows>
__device__ inline void dot_rows(const float* a, int stride, const float* w, int n_columns, int depth,
                                float (&sums)[kRows]) {
  for (int k = 0; k < depth; k += 4) {
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = __ldg(w + static_cast<std::size_t>(k + i) * n_columns);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float4 u = *reinterpret_cast<const float4*>(a + r * stride + k);
      sums[r] = fmaf(u.w, v[3], fmaf(u.z, v[2], fmaf(u.y, v[1], fmaf(u.x, v[0], sums[r]))));
    }
  }
}

// out = layer norm of rows of x, one row per warp at a time. Both shared, [rows, 128].
__device__ inline void exact_layernorm(const float* x, int first, int end, const float* weight,
                                       const float* bias, float eps, float* out) {
  const int lane = threadIdx.x % 32;
  for (int r = first + threadIdx.x / 32; r < end; r += kExactThreads / 32) {
    float v[4], sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) sum += v[i] = x[r * 128 + 32 * i + lane];
#pragma unroll
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] -= sum / 128.0f, squares = fmaf(v[i], v[i], squares);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, step);
    const float scale = 1.0f / sqrtf(squares / 128.0f + eps);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      out[r * 128 + 32 * i + lane] = fmaf(v[i] * scale, weight[32 * i + lane], bias[32 * i + lane]);
  }
}

__device__ inline float exact_gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }

// Attention of one row in one head over rows [0, row]; qkv: shared, [.., 384]; z: shared, [128] of that row.
__device__ inline void exact_attend(const float* qkv, int row, int head, float scale, float* z) {
  const float* q = qkv + row * 384 + 32 * head;
  float largest = -INFINITY, sum = 0.0f, o[32] = {};
  for (int j = 0; j <= row; ++j) {
    const float* k = qkv + j * 384 + 128 + 32 * head;
    float s = 0.0f;
#pragma unroll
    for (int i = 0; i < 32; ++i) s = fmaf(q[i], k[i], s);
    s *= scale;
    const float bigger = fmaxf(largest, s), shrink = expf(largest - bigger), p = expf(s - bigger);
    largest = bigger;
    sum = fmaf(sum, shrink, p);
#pragma unroll
    for (int i = 0; i < 32; ++i) o[i] = fmaf(o[i], shrink, p * k[128 + i]);
  }
#pragma unroll
  for (int i = 0; i < 32; ++i) z[32 * head + i] = o[i] / sum;
}

class ExactWorker {
 public:
  __device__ ExactWorker(const ExactArgs& args, float* memory)
      : args_(args),
        padded_(exact_rows(args.length)),
        x_(memory),
        y_(x_ + padded_ * 128),
        qkv_(y_ + padded_ * 128) {
    for (int i = threadIdx.x; i < padded_ * (128 + 128 + 384); i += kExactThreads) memory[i] = 0.0f;
    __syncthreads();
  }

  // Input i to z and x_last of place `to`.
  __device__ void run(std::uint32_t i, std::uint32_t to) {
    begin(args_.rows + static_cast<std::size_t>(i) * args_.length);
    for (int layer = 0; layer < args_.n_layers; ++layer) {
      const ExactBlock& block = args_.blocks[layer];
      if (layer > 0) project(block);
      const bool last = layer + 1 == args_.n_layers;
      attention(last ? args_.length - 1 : 0);
      if (!last) finish(block);
    }
    const int c = threadIdx.x, at = (args_.length - 1) * 128 + c;
    args_.z[static_cast<std::size_t>(to) * 128 + c] = y_[at];
    args_.x_last[static_cast<std::size_t>(to) * 128 + c] = x_[at];
    __syncthreads();
  }

 private:
  __device__ void begin(const std::uint32_t* rows) {
    const int c = threadIdx.x;
    for (int r = 0; r < args_.length; ++r) {
      x_[r * 128 + c] = args_.embedding.at(rows[r], c, 128);
      for (int part = 0; part < 3; ++part)
        qkv_[r * 384 + 128 * part + c] =
            args_.first[static_cast<std::size_t>(rows[r]) * 384 + 128 * part + c];
    }
    __syncthreads();
  }
  __device__ void project(const ExactBlock& block) {
    exact_layernorm(x_, 0, args_.length, block.ln1_w, block.ln1_b, args_.eps, y_);
    __syncthreads();
    for (int part = 0; part < 3; ++part) {
      const int column = 128 * part + threadIdx.x;
      for (int r0 = 0; r0 < padded_; r0 += kRowGroup) {
        float sums[kRowGroup];
#pragma unroll
        for (int r = 0; r < kRowGroup; ++r) sums[r] = block.b_qkv[column];
        dot_rows(y_ + r0 * 128, 128, block.w_qkv + column, 384, 128, sums);
#pragma unroll
        for (int r = 0; r < kRowGroup; ++r) qkv_[(r0 + r) * 384 + column] = sums[r];
      }
    }
    __syncthreads();
  }
  // z of rows from `first` on, into y.
  __device__ void attention(int first) {
    for (int i = threadIdx.x; i < (args_.length - first) * kHeads; i += kExactThreads) {
      const int row = first + i / kHeads;
      exact_attend(qkv_, row, i % kHeads, args_.score_scale, y_ + row * 128);
    }
    __syncthreads();
  }
  // x += a times w: [depth, 128] over all rows.
  __device__ void add_rows(const float* a, int stride, const float* w, int depth) {
    for (int r0 = 0; r0 < padded_; r0 += kRowGroup) {
      float sums[kRowGroup];
#pragma unroll
      for (int r = 0; r < kRowGroup; ++r) sums[r] = x_[(r0 + r) * 128 + threadIdx.x];
      dot_rows(a + r0 * stride, stride, w + threadIdx.x, 128, depth, sums);
#pragma unroll
      for (int r = 0; r < kRowGroup; ++r) x_[(r0 + r) * 128 + threadIdx.x] = sums[r];
    }
    __syncthreads();
  }
  __device__ void finish(const ExactBlock& block) {
    const int c = threadIdx.x;
    for (int r = 0; r < args_.length; ++r) x_[r * 128 + c] += block.b_o[c];
    add_rows(y_, 128, block.w_o, 128);
    exact_layernorm(x_, 0, args_.length, block.ln2_w, block.ln2_b, args_.eps, y_);
    __syncthreads();
    for (int r = 0; r < args_.length; ++r) x_[r * 128 + c] += block.b_out[c];
    for (int first = 0; first < args_.d_mlp; first += 128) {  // hidden units in the place of queries
      const int column = first + c;
      for (int r0 = 0; r0 < padded_ && column < args_.d_mlp; r0 += kRowGroup) {
        float sums[kRowGroup];
#pragma unroll
        for (int r = 0; r < kRowGroup; ++r) sums[r] = block.b_in[column];
        dot_rows(y_ + r0 * 128, 128, block.w_in + column, args_.d_mlp, 128, sums);
#pragma unroll
        for (int r = 0; r < kRowGroup; ++r) qkv_[(r0 + r) * 128 + c] = exact_gelu(sums[r]);
      }
      __syncthreads();
      add_rows(qkv_, 128, block.w_out + static_cast<std::size_t>(first) * 128, min(128, args_.d_mlp - first));
    }
  }

  const ExactArgs& args_;
  int padded_;
  float *x_, *y_, *qkv_;
};

__global__ void __launch_bounds__(kExactThreads) exact_blocks(const __grid_constant__ ExactArgs args) {
  extern __shared__ __align__(16) float exact_memory[];
  ExactWorker worker(args, exact_memory);
  const std::uint32_t n = *args.list.n;
  for (std::uint32_t i = blockIdx.x; i < n; i += gridDim.x) worker.run(args.list.at(i), i);
}

inline constexpr int kExactTailRows = 16;

// W_O, MLP, ln_final, unembedding and argmax of the listed inputs, sixteen per thread block.
class ExactTail {
 public:
  struct Shared {
    float x[kExactTailRows * 128], y[kExactTailRows * 128], hidden[kExactTailRows * 128];
    float best[kExactThreads], second[kExactThreads];
    int id[kExactThreads];
  };
  __device__ ExactTail(const ExactArgs& args, Shared& shared)
      : args_(args), s_(shared), block_(args.blocks[args.n_layers - 1]) {}

  __device__ void run(std::uint32_t first, std::uint32_t n) {
    const int c = threadIdx.x;
    for (int r = 0; r < kExactTailRows; ++r) {
      const std::size_t i = min(first + r, n - 1);
      const float x = args_.n_layers > 1
                          ? args_.x_last[i * 128 + c]
                          : args_.embedding.at(
                                args_.rows[(args_.list.at(i) + std::size_t{1}) * args_.length - 1], c, 128);
      s_.x[r * 128 + c] = x + block_.b_o[c];
      s_.y[r * 128 + c] = args_.z[i * 128 + c];
    }
    __syncthreads();
    add_rows(s_.y, block_.w_o, 128);
    exact_layernorm(s_.x, 0, kExactTailRows, block_.ln2_w, block_.ln2_b, args_.eps, s_.y);
    __syncthreads();
    for (int r = 0; r < kExactTailRows; ++r) s_.x[r * 128 + c] += block_.b_out[c];
    for (int at = 0; at < args_.d_mlp; at += 128) {
      if (at + c < args_.d_mlp) {
        float sums[kExactTailRows];
        columns(block_.b_in, block_.w_in, args_.d_mlp, at + c, sums);
        for (int r = 0; r < kExactTailRows; ++r) s_.hidden[r * 128 + c] = exact_gelu(sums[r]);
      }
      __syncthreads();
      add_rows(s_.hidden, block_.w_out + static_cast<std::size_t>(at) * 128, min(128, args_.d_mlp - at));
    }
    exact_layernorm(s_.x, 0, kExactTailRows, args_.ln_final_w, args_.ln_final_b, args_.eps, s_.y);
    __syncthreads();
    unembed(first, n);
    __syncthreads();
  }

 private:
  __device__ void columns(const float* bias, const float* w, int n_columns, int column,
                          float (&sums)[kExactTailRows]) const {
#pragma unroll
    for (int r = 0; r < kExactTailRows; ++r) sums[r] = bias[column];
    dot_rows(s_.y, 128, w + column, n_columns, 128, sums);
  }
  __device__ void add_rows(const float* a, const float* w, int depth) {
    float sums[kExactTailRows];
#pragma unroll
    for (int r = 0; r < kExactTailRows; ++r) sums[r] = s_.x[r * 128 + threadIdx.x];
    dot_rows(a, 128, w + threadIdx.x, 128, depth, sums);
#pragma unroll
    for (int r = 0; r < kExactTailRows; ++r) s_.x[r * 128 + threadIdx.x] = sums[r];
    __syncthreads();
  }
  static constexpr int kColumns =
      2;  // of a thread at a time; n_columns is a multiple of kColumns * kExactThreads
  __device__ void unembed(std::uint32_t first, std::uint32_t n) {
    TopTwo top[kExactTailRows];
    for (int column = threadIdx.x; column < args_.n_columns; column += kColumns * kExactThreads) {
      float sums[kColumns][kExactTailRows];
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
#pragma unroll
        for (int r = 0; r < kExactTailRows; ++r) sums[c][r] = args_.b_u[column + 128 * c];
      dot_columns(s_.y, args_.w_u + column, args_.n_columns, sums);
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
#pragma unroll
        for (int r = 0; r < kExactTailRows; ++r) top[r].add(sums[c][r], column + 128 * c);
    }
#pragma unroll
    for (int r = 0; r < kExactTailRows; ++r) {
      s_.best[threadIdx.x] = top[r].best, s_.second[threadIdx.x] = top[r].second,
      s_.id[threadIdx.x] = top[r].id;
      __syncthreads();
      if (threadIdx.x == r % 32 && first + r < n) {
        TopTwo all;
        for (int i = 0; i < kExactThreads; ++i) all.merge(s_.best[i], s_.second[i], s_.id[i]);
        const std::uint32_t input = args_.list.at(first + r);
        if (args_.verdicts.said != nullptr) args_.verdicts.said[input] = all.id;
        if (args_.verdicts.gap != nullptr) args_.verdicts.gap[input] = all.best - all.second;
        atomicAdd(args_.verdicts.counts + all.id, 1ULL);
      }
      __syncthreads();
    }
  }

  const ExactArgs& args_;
  Shared& s_;
  const ExactBlock& block_;
};

__global__ void __launch_bounds__(kExactThreads) exact_tail(const __grid_constant__ ExactArgs args) {
  __shared__ ExactTail::Shared shared;
  const std::uint32_t n = *args.list.n;
  ExactTail worker(args, shared);
  for (std::uint32_t first = blockIdx.x * kExactTailRows; first < n; first += gridDim.x * kExactTailRows)
    worker.run(first, n);
}

}  // namespace deeptail::cuda
