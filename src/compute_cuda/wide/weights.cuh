// What wide models keep on the device: weights as products take them, and room for rows.
#pragma once

#include <algorithm>
#include <vector>

#include "compute_cuda/device.cuh"
#include "compute_cuda/wide/product.cuh"
#include "compute_cuda/wide/rows.cuh"

namespace deeptail::cuda {

inline std::size_t wide_rows(std::size_t n) { return (n + kClusterRows - 1) / kClusterRows * kClusterRows; }

// A matrix [depth, n] and a bias by tiles of 256 columns; columns that are not there have the bias `beyond`.
struct WideWeights {
  WideWeights() = default;
  WideWeights(const std::vector<float>& from, const std::vector<float>& b, std::size_t depth_, std::size_t n,
              float beyond = 0.0f)
      : depth(static_cast<int>(depth_)), n_tiles(static_cast<int>((n + kWideColumns - 1) / kWideColumns)) {
    const std::size_t columns = static_cast<std::size_t>(n_tiles) * kWideColumns;
    std::vector<__half> packed(columns * depth_, __float2half_rn(0.0f));
    for (std::size_t k = 0; k < depth_; ++k)
      for (std::size_t c = 0; c < n; ++c) packed[index(depth, c, k)] = __float2half_rn(from[k * n + c]);
    std::vector<float> padded(columns, beyond);
    std::copy(b.begin(), b.end(), padded.begin());
    w = DeviceArray<__half>(packed);
    bias = DeviceArray<float>(padded);
  }
  __host__ __device__ static std::size_t index(int depth, std::size_t column, std::size_t k) {
    return ((column / kWideColumns * (depth / 8) + k / 8) * kWideColumns + column % kWideColumns) * 8 + k % 8;
  }
  DeviceArray<__half> w;
  DeviceArray<float> bias;  // [n_tiles * 256]
  int depth = 0, n_tiles = 0;
};

struct WideBlock {
  WideBlock(const DenseModel& m, const DenseBlock& b)
      : ln1_w(b.ln1_w),
        ln1_b(b.ln1_b),
        ln2_w(b.ln2_w),
        ln2_b(b.ln2_b),
        qkv(b.w_qkv, b.b_qkv, m.d_model, m.d_qkv()),
        o(b.w_o, b.b_o, m.d_attn(), m.d_model),
        in(b.w_in, b.b_in, m.d_model, m.d_mlp),
        out(b.w_out, b.b_out, m.d_mlp, m.d_model) {}
  DeviceArray<float> ln1_w, ln1_b, ln2_w, ln2_b;
  WideWeights qkv, o, in, out;
};

// Of the last of several blocks, for last_block.cuh: queries; W_K transposed, head by head, to rows of all heads; W_V, which takes those.
struct WideLast {
  WideLast() = default;
  WideLast(const DenseModel& m, const DenseBlock& b) {
    const std::size_t d = m.d_model, all = m.n_heads * d;
    std::vector<float> q(d * d), keys(d * all), values(all * d);
    for (std::size_t k = 0; k < d; ++k)
      for (std::size_t c = 0; c < d; ++c) {
        const float* row = b.w_qkv.data() + k * m.d_qkv();
        const std::size_t head = c / m.d_head;
        q[k * d + c] = row[c];
        keys[c * all + head * d + k] = row[d + c];
        values[(head * d + k) * d + c] = row[2 * d + c];
      }
    const std::vector<float> b_q(b.b_qkv.begin(), b.b_qkv.begin() + static_cast<long>(d)),
        b_v(b.b_qkv.begin() + static_cast<long>(2 * d), b.b_qkv.end());
    query = WideWeights(q, b_q, d, d);
    key = WideWeights(keys, {}, d, all);
    value = WideWeights(values, b_v, all, d);
  }
  WideWeights query, key, value;
};

// What a number of rows needs on its way through a block. T: of residuals (rows.cuh).
template <class T>
struct WideSpace {
  WideSpace(const DenseModel& m, std::size_t n)
      : x(wide_rows(n) * kWideModel),
        y(wide_rows(n) * kWideModel),
        z(wide_rows(n) * kWideModel),
        hidden(wide_rows(n) * m.d_mlp) {
    y.zero(), z.zero(), hidden.zero();  // rows beyond the end are multiplied, too
  }
  DeviceArray<T> x;  // [n, 512]: residuals
  DeviceArray<__half> y, z, hidden;
};

}  // namespace deeptail::cuda
