// Dense kernels of the transformer on the CPU, all fp32.
//
// Every output element is computed by one fixed chain of operations (a sequential fused multiply-add over k,
// or sixteen fixed lanes added in a fixed tree), whatever the batch, the tile, the thread or the vector
// width. So a row's result does not depend on its neighbours: a batch of one and a batch of a thousand agree
// to the bit, on any CPU with FMA. src/compute/reference.h states each chain in scalar code; the tests
// compare the fast kernels with it, bit by bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "deeptail/core.h"

namespace [[gnu::visibility("default")]] deeptail {

// Columns are kept in panels of this many; also the number of fixed lanes of a reduction.
inline constexpr std::size_t kPanel = 16;

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// A weight matrix [k, n] laid out for the product: panels[n / 16][k][16], the last panel padded with zeros.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  // values: [k, n] row-major with the given stride between rows; bias: [n] or empty for none.
  PackedMatrix(std::span<const float> values, std::size_t k, std::size_t n, std::span<const float> bias = {});

  std::size_t k() const { return k_; }
  std::size_t n() const { return n_; }
  std::size_t n_panels() const { return round_up(n_, kPanel) / kPanel; }
  const float* panel(std::size_t p) const { return panels_.data() + p * k_ * kPanel; }
  const float* bias() const { return bias_.data(); }  // [n rounded up], zeros where there is none

  float largest() const { return largest_; }  // |value| of the matrix and of the bias

  float at(std::size_t row, std::size_t column) const {
    return panels_[(column / kPanel) * k_ * kPanel + row * kPanel + column % kPanel];
  }
  PackedMatrix transposed() const;  // without bias
  // The same from values: [n, k].
  static PackedMatrix of_transposed(std::span<const float> values, std::size_t k, std::size_t n,
                                    std::span<const float> bias = {});
  // The given columns, in the given order, with their biases.
  PackedMatrix columns(std::span<const std::int32_t> ids) const;

 private:
  void finish(std::span<const float> values, std::span<const float> bias);

  std::size_t k_ = 0, n_ = 0;
  float largest_ = 0.0f;
  AlignedVector<float> panels_;
  AlignedVector<float> bias_;
};

// A matrix in memory: row i starts at data + i * stride.
struct ConstRows {
  const float* data = nullptr;
  std::size_t stride = 0;
  const float* row(std::size_t i) const { return data + i * stride; }
  ConstRows from(std::size_t i) const { return {row(i), stride}; }
};
struct Rows {
  float* data = nullptr;
  std::size_t stride = 0;
  float* row(std::size_t i) const { return data + i * stride; }
  Rows from(std::size_t i) const { return {row(i), stride}; }
  operator ConstRows() const { return {data, stride}; }
};

enum class GemmMode {
  kStore,  // c = a w + bias
  kAdd     // c = c + (a w + bias)
};

// c: [m, w.n()] = a: [m, w.k()] times w.
void gemm(std::size_t m, ConstRows a, const PackedMatrix& w, Rows c, GemmMode mode = GemmMode::kStore);
// The same for columns of panels [first, first + count) only; c's column 0 is column 16 * first of the
// product.
void gemm_panels(std::size_t m, ConstRows a, const PackedMatrix& w, std::size_t first, std::size_t count,
                 Rows c);
// A bare panel [k][16] that is not a weight matrix (attention): c: [m, n] = a: [m, k] times panel, n <= 16,
// no bias.
void gemm_bare_panel(std::size_t m, ConstRows a, std::size_t k, const float* panel, std::size_t n, Rows c);

// Layer norm of each row: (x - mean) / sqrt(var + eps) * weight + bias; or RMS norm, which leaves the mean where
// it is: x / sqrt(mean x^2 + eps) * weight.
// Row statistics go to mean_rstd: [m, 2] when it is not null; the backward pass needs them.
struct LayerNorm {
  AlignedVector<float> weight, bias;  // [d_model]; no bias in an RMS norm
  float eps = 1e-5f;
  bool centred = true;  // false: RMS norm
};
void layernorm(std::size_t m, ConstRows x, const LayerNorm& ln, Rows out, float* mean_rstd = nullptr);
// dx += the gradient of the loss w.r.t. x, given dout: [m, d_model].
void layernorm_backward(std::size_t m, ConstRows x, const float* mean_rstd, const LayerNorm& ln,
                        ConstRows dout, Rows dx);

// Exact (erf) GELU of n values, and dx = dout * gelu'(x).
void gelu(std::size_t n, const float* x, float* out);
void gelu_backward(std::size_t n, const float* x, const float* dout, float* dx);

// The tanh form of GELU, likewise.
void gelu_tanh(std::size_t n, const float* x, float* out);
void gelu_tanh_backward(std::size_t n, const float* x, const float* dout, float* dx);
// out = gate / (1 + exp(-gate)) * up; dout may be dgate or dup.
void swiglu(std::size_t n, const float* gate, const float* up, float* out);
void swiglu_backward(std::size_t n, const float* gate, const float* up, const float* dout, float* dgate,
                     float* dup);

// Rotary positions, in place: values i and i + half of every head of row: [n_heads, d_head] turn by the angle
// with these cosines and sines: [half]. rotate_back turns by the opposite angle: the way back of a gradient.
void rotate(std::size_t n_heads, std::size_t d_head, std::size_t half, const float* cosines,
            const float* sines, float* row);
void rotate_back(std::size_t n_heads, std::size_t d_head, std::size_t half, const float* cosines,
                 const float* sines, float* row);

// In place: row <- softmax(scale * row[0, n)).
void softmax(std::size_t n, float scale, float* row);
// In place: dp <- dp turned into the gradient w.r.t. the scores before the softmax:
// scale * p * (dp - sum(p * dp)).
void softmax_backward(std::size_t n, float scale, const float* p, float* dp);

// Attention of one query over gathered rows. rows: n pointers to [d]; u: [n_heads, d];
// out[h, j] = u[h] . rows[j].
void row_dots(std::size_t n, const float* const* rows, std::size_t d, std::size_t n_heads, ConstRows u,
              Rows out);
// out[h] = sum over j of p[h, j] * rows[j]; out: [n_heads, d].
void row_sums(std::size_t n, const float* const* rows, std::size_t d, std::size_t n_heads, ConstRows p,
              Rows out);

// Attention of one position over keys and values that are kept: those of positions that texts share, then a text's own.
struct KeptKeys {
  const float* keys;        // per key head, panels [n / 16][d_head][16]: sixteen positions side by side
  const float* values;      // per key head, rows [n][d_head]
  std::size_t n;            // positions
  std::size_t head_stride;  // floats from a key head's to the next one's, of both
};
struct KeptShape {
  std::size_t n_heads, kv_groups, d_head;
  float scale;  // of the scores
  // A score adds up as an element of gemm does, or as one of row_dots: as the forward pass has it.
  enum class Order { kChain, kLanes } order;
};
inline constexpr std::size_t kKeptPad =
    kPanel;  // floats after the last value, and after z, that may be touched
constexpr std::size_t kept_scratch_size(std::size_t n_heads, std::size_t n) {
  return n_heads * (round_up(n, kPanel) + kPanel);
}
// q, z: [n_heads, d_head]; scratch: kept_scratch_size.
void attend_kept(const KeptShape& shape, std::span<const KeptKeys> pieces, const float* q, float* scratch,
                 float* z);

// Screening: cheap upper bounds of many dot products. Column j bounds what row i can reach there by
//   fma(float(rows[i] . column j) * step_j, scale_i, fma(slope_j, reach_i, offset_j)),
// the dot product in integers, exact. Columns hold integers of at most kScreenColumnMax in size, rows of at
// most kScreenRowMax: then two 8-bit products of four terms fit in 16 bits.
inline constexpr int kScreenColumnMax = 63, kScreenRowMax = 64;
inline constexpr std::size_t kScreenUnit = 8;  // k is a multiple of it
class ScreenColumns {
 public:
  ScreenColumns() = default;
  ScreenColumns(std::size_t k, std::size_t n);  // all columns zero, with offset -inf: never within reach

  std::size_t k() const { return k_; }
  std::size_t n() const { return n_; }
  std::size_t n_panels() const { return round_up(n_, kPanel) / kPanel; }
  const std::uint8_t* panel(std::size_t p) const { return panels_.data() + p * k_ * kPanel; }
  int at(std::size_t row, std::size_t column) const { return panels_[index(row, column)] - kZero; }
  void set(std::size_t row, std::size_t column, int value) {
    panels_[index(row, column)] = static_cast<std::uint8_t>(value + kZero);
  }
  AlignedVector<float> step, slope, offset;  // [n rounded up]

  static constexpr int kZero = 64;  // values are stored with this added, as unsigned bytes

 private:
  std::size_t index(std::size_t row, std::size_t column) const {
    return column / kPanel * k_ * kPanel + row / 4 * 4 * kPanel + column % kPanel * 4 + row % 4;
  }
  std::size_t k_ = 0, n_ = 0;
  AlignedVector<std::uint8_t> panels_;  // [n / 16][k / 4][16][4]
};
struct ScreenRow {
  float scale, reach, threshold;
};
// bits: [m, count]; bit c of bits[i, p] is set where row i's bound in column c of panel first + p is not
// below its threshold (so a NaN sets it). rows: [m, columns.k()].
void screen_panels(std::size_t m, const std::int8_t* rows, const ScreenRow* bounds,
                   const ScreenColumns& columns, std::size_t first, std::size_t count, std::uint16_t* bits);

// Largest value and its index; the smallest index wins ties.
struct Best {
  float value;
  std::size_t index;
};
Best best_of(std::size_t n, const float* values);

// The instruction set that the kernels run with here, such as "AVX2".
const char* simd_name();

}  // namespace deeptail
