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

// The unembedding's biases; very low beyond the vocabulary.
inline std::vector<float> column_biases(const DenseHead& head, int n_tiles) {
  std::vector<float> out(static_cast<std::size_t>(n_tiles) * kMaximaColumns, kLeftOut);
  std::copy(head.b_u.begin(), head.b_u.end(), out.begin());
  return out;
}

// Targets by slot, of at most `most` tokens each.
class DeviceTargets {
 public:
  DeviceTargets(std::size_t slots, std::size_t most, std::size_t stride, int n_tiles)
      : most_(most),
        stride_(stride),
        n_tiles_(static_cast<std::size_t>(n_tiles)),
        w_(slots * most * stride),
        b_(slots * most),
        only_(slots),
        in_tile_(slots * n_tiles_),
        columns_(slots * n_tiles_ * 8) {}

  void set(const DenseHead& head, std::size_t slot, std::span<const std::uint32_t> ids) const {
    if (ids.size() > most_) throw Failure("a target of more tokens than there is room for");
    std::vector<float> columns(most_ * head.d, 0.0f), own(most_, -INFINITY);
    std::vector<std::uint8_t> in_tile(n_tiles_, 0);
    std::vector<std::uint32_t> bits(n_tiles_ * 8, 0);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::uint32_t id = ids[i];
      for (std::size_t k = 0; k < head.d; ++k)
        columns[i * head.d + k] = head.w_u_panels[(id / 16 * head.d + k) * 16 + id % 16];
      own[i] = head.b_u[id];
      in_tile[id / kMaximaColumns] = 1;
      bits[id / 32] |= 1u << id % 32;
    }
    put(w_, slot, padded(columns, head.d, stride_));
    put(b_, slot, own);
    put(only_, slot,
        std::vector<std::int32_t>{ids.size() == 1 ? static_cast<std::int32_t>(ids[0]) : kSeveralColumns});
    put(in_tile_, slot, in_tile);
    put(columns_, slot, bits);
  }
  Targets view() const {
    return {static_cast<int>(most_),
            static_cast<int>(stride_),
            w_.data(),
            b_.data(),
            only_.data(),
            in_tile_.data(),
            columns_.data()};
  }

 private:
  template <class T>
  static void put(const DeviceArray<T>& to, std::size_t slot, const std::vector<T>& from) {
    check(cudaMemcpy(to.data() + slot * from.size(), from.data(), from.size() * sizeof(T),
                     cudaMemcpyHostToDevice),
          "copy to the device");
  }

  std::size_t most_, stride_, n_tiles_;
  DeviceArray<float> w_, b_;           // [slots, most, stride], [slots, most]
  DeviceArray<std::int32_t> only_;     // [slots]
  DeviceArray<std::uint8_t> in_tile_;  // [slots, n_tiles]
  DeviceArray<std::uint32_t> columns_;
};

class RowScorer {
 public:
  // rows: of all populations; target: tokens of one, at most. plain: products as on devices other than Hopper.
  RowScorer(const DenseHead& head, std::size_t slots, std::size_t rows, std::size_t target, bool plain)
      : d_(static_cast<int>(head.d)),
        stride_(static_cast<int>(up_to(head.d, 8))),
        eps_(head.eps),
        normalise_(normalise_kernel(d_)),
        unwhitening_(head, up_to(head.d, 8)),
        columns_(head),
        bias_(column_biases(head, columns_.n_tiles)),
        targets_(slots, target, up_to(head.d, 8), columns_.n_tiles),
        means_(padded(head.means, head.d, up_to(head.d, 8))),
        ln_w_(head.ln_w),
        ln_b_(head.ln_b),
        candidates_(rows, head.d),
        which_(rows),
        slots_(rows),
        target_(rows),
        groups_(head.cumulative.empty() ? 0 : rows),
        x_(rows * up_to(head.d, 8)),
        y16_(up_to(rows, kTileRows) * static_cast<std::size_t>(columns_.width)),
        own_(rows),
        error_(rows),
        maxima_(rows * static_cast<std::size_t>(columns_.n_tiles)) {
    y16_.zero();
    prepare_kernels(plain);
  }
  // Bytes of what grows with the rows.
  static double bytes_of_row(std::size_t d, std::size_t d_vocab) {
    const double width = static_cast<double>(up_to(d, kTileDepth)),
                 tiles = static_cast<double>(up_to(d_vocab, kMaximaColumns) / kMaximaColumns);
    return 10.0 * width + 4.0 * tiles + 20.0;
  }

  int d() const { return d_; }
  int stride() const { return stride_; }  // of rows in memory
  int n_sm() const { return device_traits().n_sm; }
  const DeviceTargets& targets() const { return targets_; }

  // Where proposals put rows, counting them in *count, and by population in count_of.
  Candidates candidates(std::uint32_t* count, std::uint64_t* count_of = nullptr) const {
    return {candidates_.view(), which_.data(), slots_.data(), groups_.data(), count, count_of};
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
                          .bias = bias_.data(),
                          .target = target_.data(),
                          .slots = slots_.data(),
                          .targets = targets_.view(),
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
                          .bias = bias_.data(),
                          .targets = targets_.view(),
                          .which = which_.data(),
                          .slots = slots_.data(),
                          .groups = groups_.data(),
                          .fate = fate};
    settle_rows<<<(n + kSettleRows - 1) / kSettleRows, kSettleThreads, settle_bytes()>>>(args);
    check(cudaGetLastError(), "starting the kernels");
  }

 private:
  int settle_bytes() const { return static_cast<int>(sizeof(float)) * columns_.width; }

  void prepare_kernels(bool plain) {
    const bool fits = columns_.width <= kResidentPieces * kTileDepth;
    maxima_way_ = maxima_kernel(plain || !device_traits().hopper                        ? MaximaWay::kPlain
                                : columns_fit(columns_.width, columns_.n_tiles, n_sm()) ? MaximaWay::kKept
                                : fits                                                  ? MaximaWay::kResident
                                       : MaximaWay::kStreamed);
    check(cudaFuncSetAttribute(maxima_way_.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(maxima_way_.bytes)),
          "shared memory");
    check(cudaFuncSetAttribute(settle_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, settle_bytes()),
          "shared memory for so wide a model");
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
                             .target = target_.data(),
                             .slots = slots_.data(),
                             .targets = targets_.view(),
                             .norms = columns_.norms,
                             .own = own_.data(),
                             .error = error_.data()};
    normalise_<<<row_blocks(n), kRowThreads>>>(args);
  }

  int d_, stride_;
  float eps_;
  MaximaKernel maxima_way_{};
  NormaliseKernel normalise_;
  ScaledUnwhitening unwhitening_;
  DeviceColumns columns_;
  DeviceArray<float> bias_;  // [n_columns]
  DeviceTargets targets_;
  DeviceArray<float> means_, ln_w_, ln_b_;
  TwofoldBuffer candidates_;
  DeviceArray<std::uint32_t> which_, slots_, groups_;
  DeviceArray<std::int32_t> target_;
  DeviceArray<float> x_;     // [rows, stride]
  DeviceArray<__half> y16_;  // [rows, width]
  DeviceArray<float> own_, error_, maxima_;
};

}  // namespace deeptail::cuda
