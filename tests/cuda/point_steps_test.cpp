// What the device proposes for points, run on the host, against propose() and its noise. Needs no GPU.
#include "compute_cuda/activations/point_steps.cuh"

#include <gtest/gtest.h>

#include "compute/normals.h"
#include "deeptail/kernels.h"

namespace deeptail {
namespace {

constexpr std::size_t kDim = 37, kPoints = 50;

TEST(PointSteps, NormalsAreThoseOfTheCpu) {
  for (std::uint64_t index : {0ull, 5ull, 1ull << 52}) {
    std::vector<float> expected(kDim);
    fill_normals({9, Stream::kMoveNormals}, index, kDim, expected.data());
    for (std::size_t j = 0; j < kDim; j += 4) {
      float z[4];
      cuda::four_normals({9, index}, Stream::kMoveNormals, static_cast<std::uint32_t>(j / 4), z);
      for (std::size_t i = 0; i < 4 && j + i < kDim; ++i) EXPECT_NEAR(z[i], expected[j + i], 2e-6f);
    }
  }
}

struct CpuProposals {
  std::vector<float> u, noise, gradient, proposed, proposed_gradient, mixing;
  std::vector<double> log_density, proposed_log_density, log_ratio;
  std::vector<std::uint64_t> index;

  CpuProposals(const ProductPrior& prior, KernelKind kind, double h)
      : u(kPoints * kDim),
        noise(u),
        gradient(u),
        proposed(u),
        proposed_gradient(u),
        mixing(kDim),
        log_density(kPoints),
        proposed_log_density(kPoints),
        log_ratio(kPoints) {
    prior.sample(3, 0, kPoints, {u.data(), kDim});
    prior.log_density(kPoints, {u.data(), kDim}, log_density);
    prior.grad_log_density(kPoints, {u.data(), kDim}, {gradient.data(), kDim});
    for (std::size_t i = 0; i < kPoints; ++i) {
      index.push_back(step_index(2, 17, i));
      fill_normals({9, Stream::kMoveNormals}, index[i], kDim, noise.data() + i * kDim);
    }
    propose(kind, prior, h,
            {.n = kPoints,
             .u = {u.data(), kDim},
             .gradient = {gradient.data(), kDim},
             .log_density = log_density,
             .noise = {noise.data(), kDim},
             .proposed = {proposed.data(), kDim},
             .proposed_gradient = {proposed_gradient.data(), kDim},
             .proposed_log_density = proposed_log_density,
             .log_ratio = log_ratio},
            9, index, mixing);
  }
};

// Differences come from the last bits of the noise: a spread of at most 1 times 2e-6, and tails that stretch.
template <cuda::MoveKernel kKind, bool kGaussian>
void same_as_on_the_cpu(PriorKind prior_kind, KernelKind kind, double h) {
  const ProductPrior prior(prior_kind, kDim);
  const CpuProposals cpu(prior, kind, h);
  const cuda::Step<kKind, kGaussian> step({kGaussian, prior.nu(), prior.scale()}, h);
  for (std::size_t i = 0; i < kPoints; ++i) {
    cuda::RatioSums sums;
    const cuda::NumberKey key{9, step_index(2, 17, i)};
    for (std::size_t j = 0; j < kDim; ++j) {
      float z[4];
      cuda::four_normals(key, Stream::kMoveNormals, static_cast<std::uint32_t>(j / 4), z);
      const float v = step.propose(cpu.u[i * kDim + j], z[j % 4], key, static_cast<int>(j), sums),
                  expected = cpu.proposed[i * kDim + j];
      EXPECT_NEAR(v, expected, 4e-6f * (1.0f + std::abs(expected)));
    }
    EXPECT_NEAR(step.log_ratio(sums), cpu.log_ratio[i], 2e-4) << name_of(kind) << " point " << i;
  }
}

TEST(PointSteps, SameAsOnTheCpu) {
  using enum cuda::MoveKernel;
  for (const PriorKind t : {PriorKind::kStudentT, PriorKind::kStudentTMatched}) {
    same_as_on_the_cpu<kRwmh, false>(t, KernelKind::kRwmh, 0.02);
    same_as_on_the_cpu<kMala, false>(t, KernelKind::kMala, 0.1);
    same_as_on_the_cpu<kMapla, false>(t, KernelKind::kMapla, 0.1);
    same_as_on_the_cpu<kPcn, false>(t, KernelKind::kPcn, 0.2);
  }
  same_as_on_the_cpu<kRwmh, true>(PriorKind::kGaussian, KernelKind::kRwmh, 0.02);
  same_as_on_the_cpu<kMala, true>(PriorKind::kGaussian, KernelKind::kMala, 0.1);
  same_as_on_the_cpu<kMala, true>(PriorKind::kGaussian, KernelKind::kMapla, 0.1);
  same_as_on_the_cpu<kPcn, true>(PriorKind::kGaussian, KernelKind::kPcn, 0.7);
}

// h after each of 5 moves, of which 3 adapt.
TEST(PointSteps, StepSizesAdaptInTheBurnIn) {
  std::vector<double> h(5, 0.0);
  const std::vector<std::uint32_t> accepted = {10, 60, 57, 99, 0};
  const cuda::StepSizes sizes{.first = 0.1,
                              .adaptation = 0.1,
                              .wanted = 0.57,
                              .largest = 1.0,
                              .burn_in = 3,
                              .h = h.data(),
                              .accepted = accepted.data()};
  double expected = 0.1;
  for (std::size_t move = 0; move < 5; ++move) {
    h[move] = sizes.at(move, 100);
    EXPECT_DOUBLE_EQ(h[move], expected);
    if (move < 3) expected *= std::exp(0.1 * (accepted[move] / 100.0 - 0.57));
  }
}

}  // namespace
}  // namespace deeptail
