#include <gtest/gtest.h>

#include "core/statistics.h"
#include "deeptail/closed_form.h"
#include "sizes.h"
#include "splitting/continuous_particles.h"

namespace deeptail {
namespace {

// Every kernel, started in the prior restricted to a level, must stay there: after some moves the
// coordinate's conditional law is still the tail of the marginal. Kolmogorov's sqrt(n) D exceeds 2.23 with
// chance 1e-4.
TEST(Kernels, LeaveTheRestrictedPriorAsItIs) {
  ThreadPool pool(2);
  for (const PriorKind kind : {PriorKind::kGaussian, PriorKind::kStudentT, PriorKind::kStudentTMatched})
    for (const KernelKind kernel :
         {KernelKind::kRwmh, KernelKind::kMala, KernelKind::kMapla, KernelKind::kPcn}) {
      const std::size_t dim = 3, n = sized(10000, 2000);
      const ProductPrior prior(kind, dim);
      // Score: the first coordinate, and the level its upper tenth.
      ClosedFormProblem problem{.shape = EventShape::kMax, .prior = kind, .dim = dim, .n_margins = 1};
      ClosedFormScore score(problem);
      ContinuousParticles particles(prior, score,
                                    {.kind = kernel,
                                     .moves = 8,
                                     .burn_in = 0,
                                     .step_size = 0.3,
                                     .tail_every = 3,
                                     .frozen_steps = {0.3}},
                                    pool);
      particles.sample(n, 11);
      const auto tail = [&](double x) {
        return kind == PriorKind::kGaussian ? normal_tail(x) : student_t_tail(x / prior.scale(), 5);
      };
      const double level = kind == PriorKind::kGaussian ? normal_upper_quantile(0.1)
                                                        : prior.scale() * student_t_upper_quantile(0.1, 5);
      std::vector<std::uint32_t> above;
      for (std::uint32_t i = 0; i < n; ++i)
        if (particles.rows().row(i)[0] >= level) above.push_back(i);
      particles.resample(above);  // no copies: independent draws from the restricted prior
      const MoveStats stats = particles.move(level, 0, 12);
      EXPECT_GT(stats.acceptance(), 0.1) << name_of(kernel);
      EXPECT_GT(stats.mean_squared_jump, 0.1) << name_of(kernel);
      EXPECT_LT(stats.parent_correlation, 0.95) << name_of(kernel);

      const auto distance = [&](std::size_t coordinate, auto cdf_of) {
        std::vector<double> x;
        for (std::size_t i = 0; i < particles.size(); ++i) x.push_back(particles.rows().row(i)[coordinate]);
        std::sort(x.begin(), x.end());
        double worst = 0.0;
        const auto count = static_cast<double>(x.size());
        for (std::size_t i = 0; i < x.size(); ++i)
          worst = std::max({worst, cdf_of(x[i]) - static_cast<double>(i) / count,
                            static_cast<double>(i + 1) / count - cdf_of(x[i])});
        return worst * std::sqrt(count);
      };
      EXPECT_LT(distance(0, [&](double x) { return 1.0 - tail(x) / 0.1; }), 2.23)
          << name_of(kind) << " " << name_of(kernel);
      EXPECT_LT(distance(1, [&](double x) { return 1.0 - tail(x); }), 2.23)
          << name_of(kind) << " " << name_of(kernel);
    }
}

TEST(Kernels, AdaptTowardsTheWantedAcceptanceAndThenFreeze) {
  ThreadPool pool(2);
  ClosedFormProblem problem =
      make_problem(EventShape::kLinear, PriorKind::kGaussian, 20, 1e-3, KernelKind::kMala);
  ClosedFormScore score(problem);
  const ProductPrior prior(PriorKind::kGaussian, 20);
  ContinuousParticles particles(prior, score, {.moves = 400, .burn_in = 300, .step_size = 1e-3}, pool);
  particles.sample(sized(500, 100), 3);
  const MoveStats first = particles.move(-1e9, 0, 3);
  EXPECT_GT(first.step_size, 0.05);
  const MoveStats second = particles.move(-1e9, 1, 3);
  EXPECT_NEAR(second.acceptance(), 0.57, 0.05);
}

TEST(ClosedForm, ThresholdsInvertTheProbability) {
  EXPECT_NEAR(make_problem(EventShape::kLinear, PriorKind::kGaussian, 8, 1e-6, KernelKind::kMala).threshold,
              4.753424, 1e-5);
  // chi-squared with two degrees of freedom has tail exp(-x / 2).
  EXPECT_NEAR(make_problem(EventShape::kSphere, PriorKind::kGaussian, 2, 1e-4, KernelKind::kMala).threshold,
              -2.0 * std::log(1e-4), 1e-9);
  EXPECT_NEAR(make_problem(EventShape::kLinear, PriorKind::kStudentT, 8, 1e-4, KernelKind::kMala).threshold,
              9.677566, 1e-5);
  // A sum of one coordinate is the coordinate.
  EXPECT_NEAR(make_problem(EventShape::kSum, PriorKind::kStudentT, 1, 1e-4, KernelKind::kMala).threshold,
              9.677566, 1e-5);
  // By 16 steps of numerical convolution (tests/reference/t_sum_tail.py).
  EXPECT_NEAR(
      make_problem(EventShape::kSum, PriorKind::kStudentT, 16, 2.17454e-7, KernelKind::kMala).threshold, 60.0,
      1e-3);
}

// Few particles of one problem; the statistical test has the rest. Five standard deviations: one in 10^6.
TEST(ClosedForm, AQuickProblemAgrees) {
  ThreadPool pool(2);
  const ClosedFormProblem problem =
      make_problem(EventShape::kSphere, PriorKind::kStudentT, 2, 1e-4, KernelKind::kPcn);
  const ClosedFormResult result =
      run_closed_form(problem, {.n_particles = sized(100, 50), .moves = sized(20, 10)}, pool);
  const double sd = std::max(result.summary.relative_sd, result.summary.genealogy_relative_sd);
  EXPECT_LT(std::abs(result.summary.log_p - problem.log_p), 5.0 * sd);
}

}  // namespace
}  // namespace deeptail
