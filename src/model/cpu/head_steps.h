// What happens to the heads of queries and keys between their projection and attention: their norms, then the
// turn by their position. Nothing in models whose keys are still.
#pragma once

#include "model/cpu/packed_weights.h"

namespace deeptail {

class HeadSteps {
 public:
  HeadSteps(const ModelConfig& config, std::size_t max_length);

  bool none() const { return half_ == 0 && !qk_norm_; }
  bool has_norms() const { return qk_norm_; }
  // In place. q: [n_heads, d_head], k: [n_kv_heads, d_head].
  void queries(const PackedBlock& w, std::size_t position, float* q) const;
  void keys(const PackedBlock& w, std::size_t position, float* k) const;
  // The gradient w.r.t. their results becomes the one w.r.t. what they were given: `before`, which is read only
  // where there are norms.
  void queries_backward(const PackedBlock& w, std::size_t position, const float* before, float* dq);
  void keys_backward(const PackedBlock& w, std::size_t position, const float* before, float* dk);

 private:
  void forward(const LayerNorm& norm, std::size_t n_heads, std::size_t position, float* row) const;
  void backward(const LayerNorm& norm, std::size_t n_heads, std::size_t position, const float* before,
                float* row);

  bool qk_norm_;
  std::size_t n_heads_, n_kv_heads_, d_head_, half_;
  AlignedVector<float> cosines_, sines_;        // [max_length, half], from double, rounded once
  AlignedVector<float> normed_, grad_, stats_;  // [n_heads, d_head], the same, [n_heads, 2]
};

}  // namespace deeptail
