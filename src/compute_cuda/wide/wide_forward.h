// The forward pass in fp16 for d_model 512: products by tensor cores with fp32 sums, from the embedding to the token said or the
// margin without logits in device memory. For .cu files; as FastForward, which hands models of this width on.
#pragma once

#include <memory>

#include "compute_cuda/fast/fast_forward.h"

namespace deeptail::cuda {

class WideForward {
 public:
  static bool fits(const DenseModel& model, std::size_t length);

  WideForward(const DenseModel& model, const DenseInputs& inputs, std::size_t max_inputs);
  ~WideForward();
  WideForward(WideForward&&) noexcept;

  void run_blocks(std::uint32_t n, const std::uint32_t* rows, cudaStream_t stream) const;
  void say(std::uint32_t n, const NearTies& near, const Verdicts& verdicts, cudaStream_t stream) const;
  void margins(std::uint32_t n, const std::uint32_t* rows, const std::uint32_t* target, float* margin,
               cudaStream_t stream) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace deeptail::cuda
