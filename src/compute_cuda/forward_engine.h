// The forward pass of any model on the device, nearly as exact as fp32 on the CPU: products in twofold fp16,
// everything else in fp32. For .cu files.
#pragma once

#include <memory>

#include "compute_cuda/exact/twofold_products.h"

namespace deeptail::cuda {

class ForwardEngine {
 public:
  // counts_on_device: margins() will be given such; takes more memory.
  ForwardEngine(const DenseModel& model, const DenseInputs& inputs, bool counts_on_device = false);
  ~ForwardEngine();
  ForwardEngine(ForwardEngine&&) noexcept;

  // rows: [n, length], rows of DenseInputs; target: [n] token ids, or kNoTarget -> margin and other as
  // Unembedding has them: [n]. Any n. Where n_device is not null, of the first *n_device, at most n. On the
  // device, asynchronous; calls must not overlap.
  void margins(std::uint32_t n, const std::uint32_t* rows, const std::uint32_t* target, float* margin,
               std::uint32_t* other, cudaStream_t stream, const std::uint32_t* n_device = nullptr) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace deeptail::cuda
