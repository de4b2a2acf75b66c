// Scores candidates: owns what lies between their whitened points and their fate, and starts the kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "compute_cuda/activations/score_rows.cuh"
#include "compute_cuda/exact/twofold_products.h"

namespace deeptail::cuda {

inline std::size_t up_to(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}
inline unsigned row_blocks(std::size_t n) { return static_cast<unsigned>((n + kRowWarps - 1) / kRowWarps); }

// [n, d] to [n, stride], zeros behind.
inline std::vector<float> padded(std::span<const float> rows, std::size_t d, std::size_t stride) {
  std::vector<float> out(rows.size() / d * stride, 0.0f);
  for (std::size_t i = 0; i < rows.size() / d; ++i)
    std::copy_n(rows.data() + i * d, d, out.data() + i * stride);
  return out;
}

template <class T>
void upload(const DeviceArray<T>& to, std::span<const T> from) {
  if (!from.empty())
    check(cudaMemcpy(to.data(), from.data(), from.size_bytes(), cudaMemcpyHostToDevice),
          "copy to the device");
}

// L^T times a power of two that brings its largest number near 2^12, so that small ones keep their digits in
// fp16.
struct ScaledUnwhitening {
  PackedWeights weights;
  float unscale = 1.0f;
  ScaledUnwhitening(const DenseHead& head, std::size_t stride) {
    float largest = 0.0f;
    for (const float l : head.unwhitening) largest = std::max(largest, std::abs(l));
    const int exponent = largest > 0.0f && std::isfinite(largest) ? 12 - std::ilogb(largest) : 0;
    unscale = std::ldexp(1.0f, -exponent);
    std::vector<float> scaled = padded(head.unwhitening, head.d, stride);
    for (float& l : scaled) l = std::ldexp(l, exponent);
    weights = PackedWeights(scaled.data(), head.d, stride);
  }
};

// W_U on the device.
struct DeviceColumns {
  int width, n_tiles;
  DeviceArray<__half> high, low;
  ColumnNorms norms{};

  explicit DeviceColumns(const DenseHead& head)
      : width(static_cast<int>(up_to(head.d, kTileDepth))),
        n_tiles(static_cast<int>(up_to(head.d_vocab, kMaximaColumns) / kMaximaColumns)),
        high(static_cast<std::size_t>(n_tiles) * kMaximaColumns * static_cast<std::size_t>(width)),
        low(high.size()) {
    const DeviceArray<float> panels(head.w_u_panels.size()), found(2);
    upload(panels, head.w_u_panels);
    found.zero();
    pack_columns<<<n_tiles, kMaximaColumns>>>(panels.data(), static_cast<int>(head.d),
                                              static_cast<int>(head.d_vocab), width, high.data(), low.data(),
                                              found.data());
    check(cudaGetLastError(), "packing the unembedding");
    const std::vector<float> values = found.to_host();
    norms = {values[0], values[1]};
    if (!std::isfinite(norms.largest) || !std::isfinite(norms.largest_rest))
      throw Failure("the unembedding has weights beyond the range of fp16");
  }
  ColumnWeights view() const { return {high.data(), low.data(), width}; }
};

// The target's columns; the others' biases, with the target out of the way.
struct DeviceTarget {
  int n;
  DeviceArray<float> w, b, bias;  // [n, stride], [n], [n_columns]

  DeviceTarget(const DenseHead& head, std::size_t stride, int n_tiles)
      : n(static_cast<int>(head.target.size())) {
    std::vector<float> others(static_cast<std::size_t>(n_tiles) * kMaximaColumns, -1e30f), columns, own;
    std::copy(head.b_u.begin(), head.b_u.end(), others.begin());
    for (const std::uint32_t id : head.target) {
      for (std::size_t k = 0; k < head.d; ++k)
        columns.push_back(head.w_u_panels[(id / 16 * head.d + k) * 16 + id % 16]);
      own.push_back(head.b_u[id]);
      others[id] = -1e30f;
    }
    w = DeviceArray<float>(padded(columns, head.d, stride));
    b = DeviceArray<float>(own);
    bias = DeviceArray<float>(others);
  }
};

class RowScorer {
 public:
  // plain: products as on devices other than Hopper.
  RowScorer(const DenseHead& head, std::size_t room, bool plain)
      : d_(static_cast<int>(head.d)),
        stride_(static_cast<int>(up_to(head.d, 8))),
        eps_(head.eps),
        unwhitening_(head, up_to(head.d, 8)),
        columns_(head),
        target_(head, up_to(head.d, 8), columns_.n_tiles),
        means_(padded(head.means, head.d, up_to(head.d, 8))),
        ln_w_(head.ln_w),
        ln_b_(head.ln_b),
        candidates_(room, head.d),
        which_(room),
        groups_(head.cumulative.empty() ? 0 : room),
        x_(room * up_to(head.d, 8)),
        y16_(up_to(room, kTileRows) * static_cast<std::size_t>(columns_.width)),
        own_(room),
        error_(room),
        maxima_(room * static_cast<std::size_t>(columns_.n_tiles)) {
    y16_.zero();
    prepare_kernels(plain);
  }

  int d() const { return d_; }
  int stride() const { return stride_; }  // of rows in memory
  int n_sm() const { return device_traits().n_sm; }

  // Where proposals put rows, counting them in *count.
  Candidates candidates(std::uint32_t* count) const {
    return {candidates_.view(), which_.data(), groups_.data(), count};
  }

  // The maxima of the logits of *count candidates, at most n. after(): called after each of three parts.
  template <class After>
  void run(std::uint32_t n, const std::uint32_t* count, const After& after) const {
    product_to_floats({.a = candidates_.view(), .n = n, .w = unwhitening_.weights.view(), .n_device = count},
                      x_.data(), stride_, nullptr);
    after();
    normalise(n, count);
    after();
    const MaximaArgs args{.y = y16_.data(),
                          .w = columns_.high.data(),
                          .bias = target_.bias.data(),
                          .n = n,
                          .n_device = count,
                          .width = columns_.width,
                          .n_tiles = columns_.n_tiles,
                          .maxima = maxima_.data()};
    maxima_way_.kernel<<<n_sm(), kMaximaThreads, maxima_way_.bytes>>>(args);
    after();
  }

  // Then the fate of each.
  void settle(std::uint32_t n, const std::uint32_t* count, const Fate& fate) const {
    const SettleArgs args{.n = n,
                          .n_device = count,
                          .d = d_,
                          .stride = stride_,
                          .n_tiles = columns_.n_tiles,
                          .y = x_.data(),
                          .maxima = maxima_.data(),
                          .own = own_.data(),
                          .error = error_.data(),
                          .w = columns_.view(),
                          .bias = target_.bias.data(),
                          .which = which_.data(),
                          .groups = groups_.data(),
                          .fate = fate};
    settle_rows<<<n, kSettleThreads, settle_bytes()>>>(args);
    check(cudaGetLastError(), "starting the kernels");
  }

 private:
  int settle_bytes() const { return static_cast<int>(sizeof(float)) * (columns_.width + columns_.n_tiles); }

  void prepare_kernels(bool plain) {
    const bool fits = columns_.width <= kResidentPieces * kTileDepth;
    maxima_way_ = maxima_kernel(plain || !device_traits().hopper ? MaximaWay::kPlain
                                : fits                           ? MaximaWay::kResident
                                                                 : MaximaWay::kStreamed);
    check(cudaFuncSetAttribute(maxima_way_.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(maxima_way_.bytes)),
          "shared memory");
    check(cudaFuncSetAttribute(settle_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, settle_bytes()),
          "shared memory for so large a vocabulary");
  }

  void normalise(std::uint32_t n, const std::uint32_t* count) const {
    const NormaliseArgs args{.n = n,
                             .n_device = count,
                             .d = d_,
                             .stride = stride_,
                             .unscale = unwhitening_.unscale,
                             .x = x_.data(),
                             .means = means_.data(),
                             .groups = groups_.data(),
                             .ln_w = ln_w_.data(),
                             .ln_b = ln_b_.data(),
                             .eps = eps_,
                             .y16 = y16_.data(),
                             .width = columns_.width,
                             .n_targets = target_.n,
                             .target_w = target_.w.data(),
                             .target_b = target_.b.data(),
                             .norms = columns_.norms,
                             .own = own_.data(),
                             .error = error_.data()};
    normalise_rows<<<row_blocks(n), kRowThreads>>>(args);
  }

  int d_, stride_;
  float eps_;
  MaximaKernel maxima_way_{};
  ScaledUnwhitening unwhitening_;
  DeviceColumns columns_;
  DeviceTarget target_;
  DeviceArray<float> means_, ln_w_, ln_b_;
  TwofoldBuffer candidates_;
  DeviceArray<std::uint32_t> which_, groups_;
  DeviceArray<float> x_;     // [n, stride]
  DeviceArray<__half> y16_;  // [n, width]
  DeviceArray<float> own_, error_, maxima_;
};

}  // namespace deeptail::cuda
