// Products of twofold rows (twofold_rows.cuh) with weights, and what transformers put around them. For .cu
// files; every call is asynchronous on its stream, every pointer but those of constructors is on the device.
#pragma once

#include "compute_cuda/device.cuh"
#include "compute_cuda/exact/twofold_rows.cuh"

namespace deeptail::cuda {

// Room for n rows.
class TwofoldBuffer {
 public:
  TwofoldBuffer() = default;
  TwofoldBuffer(std::size_t n, std::size_t width);
  TwofoldRows view() const { return {high_.data(), low_.data(), width_}; }

 private:
  int width_ = 0;
  DeviceArray<__half> high_, low_;
};

// [depth, n_columns], both rounded up as in TwofoldRows of its transpose.
struct TwofoldWeights {
  const __half *high = nullptr, *low = nullptr;  // low is null where high is exact
  int depth = 0, n_columns = 0, n_valid = 0;     // n_valid: columns that exist
};

class PackedWeights {
 public:
  PackedWeights() = default;
  // w: [depth, n], row-major, on the host.
  PackedWeights(const float* w, std::size_t depth, std::size_t n);
  TwofoldWeights view() const;

 private:
  int depth_ = 0, n_columns_ = 0, n_valid_ = 0;
  DeviceArray<__half> high_, low_;
};

// A product: n rows of `a` times w. Where n_device is not null, *n_device rows, at most n.
struct Product {
  TwofoldRows a;
  std::uint32_t n;
  TwofoldWeights w;
  const float* bias = nullptr;  // [n_valid], or null
  const std::uint32_t* n_device = nullptr;
};
void product_to_floats(const Product& product, float* out, int stride, cudaStream_t stream);
// out = GELU(a w + bias), by erf or tanh; of a SwiGLU, whose gates and values are columns in turn, half as many.
void product_activated(const Product& product, Architecture::Mlp mlp, const TwofoldRows& out,
                       cudaStream_t stream);
void product_added(const Product& product, float* x, int stride, cudaStream_t stream);  // x += a w + bias

// out = layer norm of x: [n, d], or its RMS norm, whose b is zeros.
struct LayerNorm {
  const float *w, *b;  // [d]
  float eps;
  bool rms = false;
};
void layernorm_rows(const float* x, std::uint32_t n, int d, const LayerNorm& norm, const TwofoldRows& out,
                    cudaStream_t stream, const std::uint32_t* n_device = nullptr);

inline constexpr std::uint32_t kNoTarget = 0xffffffffu;

// Logits, of which only the margin leaves the registers.
class Unembedding {
 public:
  Unembedding() = default;
  // w_u: [d, d_vocab], b_u: [d_vocab], on the host.
  Unembedding(const float* w_u, const float* b_u, std::size_t d, std::size_t d_vocab, std::size_t max_rows);

  // margin[r] = logit of target[r] - the largest other one, other[r] = whose that is (of equal ones the
  // smallest id). With kNoTarget, other[r] is the argmax. Calls must not overlap.
  void margins(const TwofoldRows& y, std::uint32_t n, const std::uint32_t* target, float* margin,
               std::uint32_t* other, cudaStream_t stream, const std::uint32_t* n_device = nullptr) const;

 private:
  std::size_t max_rows_ = 0;
  PackedWeights w_u_;
  DeviceArray<float> b_u_;         // [n_columns]: -1e30 beyond the vocabulary
  DeviceArray<float> best_, own_;  // [slices, rows]
  DeviceArray<std::uint32_t> id_;
};

}  // namespace deeptail::cuda
