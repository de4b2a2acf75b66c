// Counts what a model says on sampled inputs, on the device. No device types here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute_cuda/dense.h"

namespace deeptail::cuda {

// The name and memory of the device in use, such as "NVIDIA H200, 139 GiB". Throws Failure when there is
// none.
std::string device_name();

struct EngineOptions {
  // Inputs whose two best fp16 logits differ by at most this are decided in fp32. 0: none; infinity: all.
  float near_tie = 0.0f;
  std::size_t batch = 0;  // inputs at a time; 0: what suits the model
};

// What the engine decided, input by input, for tests and measurements.
struct Decisions {
  std::vector<std::uint32_t> said;  // [n]
  std::vector<float> gap;           // [n]: best minus second best logit
};

class TruthEngine {
 public:
  // Throws Failure when the device cannot do it.
  TruthEngine(const DenseModel& model, const DenseInputs& inputs, std::uint64_t seed,
              const EngineOptions& options);
  ~TruthEngine();

  void set_near_tie(float near_tie);
  // The bound to use where none is given, from how far fp16 is off on the first samples.
  float usual_near_tie();

  // Starts counting samples [first, first + n); returns before it is done.
  void count(std::uint64_t first, std::uint64_t n);
  // Waits, and adds what was counted since the last call to counts: [d_vocab].
  void collect(std::span<std::uint64_t> counts);
  std::size_t batch() const;
  std::uint64_t n_near() const;  // decided in fp32 so far; after collect()

  // The rows of DenseInputs that samples [first, first + n) hold: [n, length]. n at most batch().
  std::vector<std::uint32_t> sampled_rows(std::uint64_t first, std::size_t n);
  // What is said after samples [first, first + n), as count() decides it: [n]. n at most batch().
  std::vector<std::uint32_t> said(std::uint64_t first, std::size_t n);
  Decisions decide(std::uint64_t first, std::size_t n);        // with near-ties as in count()
  Decisions decide_exact(std::uint64_t first, std::size_t n);  // all in fp32

  // Seconds of each stage over one batch: sampling, blocks, tail, near-ties.
  struct StageSeconds {
    double sample, blocks, tail, near;
  };
  StageSeconds time_stages(std::uint64_t first);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace deeptail::cuda
