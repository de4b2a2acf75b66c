// The forward pass in fp16 for the zoo's sizes, and by wide/ for those of gelu-1l: tensor-core products with fp32 sums, everything from
// the embedding to the token said or the margin without logits in device memory. For .cu files.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "compute_cuda/dense.h"

namespace deeptail::cuda {

// Where decisions go.
struct Verdicts {
  unsigned long long* counts;  // [d_vocab]
  std::uint32_t* said;         // [n], or null
  float* gap;                  // [n]: best logit minus second best; or null
};

// Inputs whose gap is at most `bound` are not counted but listed: number `first` + i for the i-th.
struct NearTies {
  float bound;
  std::uint64_t first;
  std::uint64_t* listed;
  std::uint32_t* n_listed;
};

class WideForward;

class FastForward {
 public:
  // Whether the kernels are made for this model: its whole architecture and its sizes.
  static bool fits(const DenseModel& model, std::size_t length);

  FastForward(const DenseModel& model, const DenseInputs& inputs, std::size_t max_inputs);
  ~FastForward();
  FastForward(FastForward&&) noexcept;

  // rows: [n, length], rows of DenseInputs, n at most max_inputs. Two steps, asynchronous: what the last
  // position's attention in the last block sees, and the residual there; then the rest, and what is said.
  void run_blocks(std::uint32_t n, const std::uint32_t* rows, cudaStream_t stream) const;
  void say(std::uint32_t n, const std::uint32_t* rows, const NearTies& near, const Verdicts& verdicts,
           cudaStream_t stream) const;

  // rows: [n, length], target: [n] token ids -> margin: [n], the target's logit minus the largest other one.
  // Any n, in pieces of max_inputs. Asynchronous; calls must not overlap.
  void margins(std::uint32_t n, const std::uint32_t* rows, const std::uint32_t* target, float* margin,
               cudaStream_t stream) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;         // one of
  std::unique_ptr<WideForward> wide_;  // the two
};

}  // namespace deeptail::cuda
