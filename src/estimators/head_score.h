// The score of ga-amls: the margin of an activation given in whitened coordinates.
#pragma once

#include <optional>

#include "deeptail/prior.h"

namespace deeptail {

// s(u) = margin of mean + u L^T, or of the group's mean + u L^T, through ln_final and W_U; in fp32.
class HeadScore {
 public:
  struct Scratch {
    AlignedVector<float> resid;  // [rows, d_model]
    MarginTest::ScratchPtr margin;
  };
  // All must outlive it. group_means: [n_groups, d_model], or empty. screen: made with activations like those
  // to come.
  HeadScore(const Head& head, const Target& target, const Whitening& whitening,
            std::span<const float> group_means, const Screen& screen, ThreadPool& pool);

  std::unique_ptr<Scratch> make_scratch() const;
  // Also remembers which tokens stand in the target's way, for at_least to try first.
  void evaluate(std::size_t n, ConstRows u, std::span<const std::uint32_t> groups, std::span<double> values);
  void at_least(double level, std::size_t n, ConstRows u, std::span<const std::uint32_t> groups,
                std::span<std::uint8_t> passed, Scratch& scratch) const;

 private:
  void unwhiten(std::size_t n, ConstRows u, std::span<const std::uint32_t> groups, Rows resid) const;

  const Head& head_;
  const Target& target_;
  PackedMatrix unwhitening_;
  std::span<const float> group_means_;
  const Screen& screen_;
  ThreadPool& pool_;
  std::optional<MarginTest> test_;
};

}  // namespace deeptail
