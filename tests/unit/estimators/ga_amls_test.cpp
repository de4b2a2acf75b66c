#include "deeptail/ga_amls.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sizes.h"

namespace deeptail {
namespace {

struct GroupsProblem {
  Head head;
  Activations activations;
};

// Two groups of Gaussian activations around means of their own; token 0 wins far out along the first axis.
GroupsProblem two_groups(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<float> normal;
  const std::size_t d = 3, d_vocab = 3;
  GroupsProblem p{Head{std::nullopt, PackedMatrix(std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0, 1}, d, d_vocab,
                                                  std::vector<float>{-3.0f, 0.0f, -1.0f})},
                  {.n = n, .d_model = d, .values = AlignedVector<float>(n * d)}};
  for (std::size_t i = 0; i < n; ++i) {
    const bool second = i % 4 == 0;
    p.activations.last_tokens.push_back(second ? 1 : 0);
    for (std::size_t j = 0; j < d; ++j)
      p.activations.values[i * d + j] = 0.5f * normal(rng) + (second && j == 0 ? 0.7f : 0.0f);
  }
  return p;
}

GaAmlsConfig quick(GaPrior prior) {
  GaAmlsConfig config{
      .prior = prior, .start = GaStart::kPrior, .n_particles = sized(400, 150), .replicas = 2};
  config.kernel.moves = sized(60, 6);
  config.kernel.burn_in = sized(30, 3);
  config.kernel.step_size = 0.1;
  return config;
}

TEST(GaAmls, IsTheSameForAnyNumberOfThreads) {
  const GroupsProblem p = two_groups(2000, 1);
  const Target target({0}, p.head);
  ThreadPool one(1), two(2), seven(7);
  for (const GaPrior prior : {GaPrior::kStudentT, GaPrior::kConditioned}) {
    const GaAmlsConfig config = quick(prior);
    const Estimate e = ga_amls(p.head, p.activations, target, config, one);
    for (ThreadPool* pool : {&two, &seven}) {
      const Estimate other = ga_amls(p.head, p.activations, target, config, *pool);
      EXPECT_EQ(e.log_p, other.log_p);
      EXPECT_EQ(e.log_low, other.log_low);
      EXPECT_EQ(e.cost.score_evals, other.cost.score_evals);
    }
  }
}

// Against plain sampling of the same law: group means and t residuals of the fitted variance. Five standard
// deviations of both; the fit itself is known to a percent.
TEST(GaAmls, TheConditionedPriorFollowsItsGroups) {
  const GroupsProblem p = two_groups(20000, 2);
  const Target target({0}, p.head);
  std::mt19937_64 rng(5);
  std::student_t_distribution<double> t(5.0);
  double hits = 0.0;
  constexpr std::size_t kDraws = sized(500000, 5000);
  const double scale = 0.5 * std::sqrt(0.6);
  for (std::size_t i = 0; i < kDraws; ++i) {
    const double x0 = (i % 4 == 0 ? 0.7 : 0.0) + scale * t(rng), x1 = scale * t(rng), x2 = scale * t(rng);
    hits += x0 - 3.0 > x1 && x0 - 3.0 > x2 - 1.0;
  }
  ThreadPool pool(2);
  GaAmlsConfig config = quick(GaPrior::kConditioned);
  config.replicas = sized(4, 2);
  const Estimate e = ga_amls(p.head, p.activations, target, config, pool);
  if (config.replicas < 4) return;
  const double own = (e.log_high - e.log_low) / 4.0;
  EXPECT_NEAR(e.log_p, std::log(hits / kDraws), 5.0 * std::sqrt(1.0 / hits + own * own) + 0.05);
  EXPECT_EQ(e.status, Status::kOk);
  EXPECT_GE(e.levels.size(), 3u);
}

TEST(GaAmls, FewMovesOfOneKernelUnderAHeavyPriorAreNamed) {
  const GroupsProblem p = two_groups(500, 4);
  const Target target({0}, p.head);
  ThreadPool pool(1);
  const auto is_named = [&](GaPrior prior, KernelKind kernel, std::size_t tail_every) {
    GaAmlsConfig config = quick(prior);
    config.n_particles = 40;
    config.kernel.kind = kernel;
    config.kernel.moves = 9, config.kernel.burn_in = 2;
    config.kernel.tail_every = tail_every;
    const Estimate e = ga_amls(p.head, p.activations, target, config, pool);
    return std::any_of(e.warnings.begin(), e.warnings.end(), [](const std::string& w) {
      return w.find("few under a t prior") != std::string::npos;
    });
  };
  EXPECT_TRUE(is_named(GaPrior::kStudentT, KernelKind::kMala, 0));
  EXPECT_TRUE(is_named(GaPrior::kConditioned, KernelKind::kRwmh, 0));
  EXPECT_FALSE(is_named(GaPrior::kStudentT, KernelKind::kMala, 8));
  EXPECT_FALSE(is_named(GaPrior::kStudentT, KernelKind::kPcn, 0));
  EXPECT_FALSE(is_named(GaPrior::kGaussian, KernelKind::kMala, 0));
}

TEST(GaAmls, AnImpossibleTargetEndsWithABound) {
  GroupsProblem p = two_groups(2000, 3);
  // Token 2's column is the mean of the others': never the largest.
  p.head = Head{std::nullopt, PackedMatrix(std::vector<float>{1, 0, 0.5f, 0, 1, 0.5f, 0, 0, 0}, 3, 3,
                                           std::vector<float>{0, 0, -0.1f})};
  ThreadPool pool(2);
  GaAmlsConfig config = quick(GaPrior::kGaussian);
  config.max_levels = 20;
  const Estimate e = ga_amls(p.head, p.activations, Target({2}, p.head), config, pool);
  EXPECT_EQ(e.status, Status::kNotReachedUpperBound);
  EXPECT_EQ(std::exp(e.log_p), 0.0);
  EXPECT_LT(e.log_high, 0.0);
  EXPECT_TRUE(std::isfinite(e.log_high));
  EXPECT_FALSE(e.warnings.empty());
}

// Being asked while particles move changes nothing; a "no" within a level ends the run there.
TEST(GaAmls, IsAskedWithinLevelsAndStops) {
  const GroupsProblem p = two_groups(2000, 1);
  const Target target({0}, p.head);
  ThreadPool pool(2);
  const GaAmlsConfig config = quick(GaPrior::kStudentT);
  const Estimate e = ga_amls(p.head, p.activations, target, config, pool);
  double last = 0.0;
  std::size_t between = 0, levels = 0;
  const Estimate asked = ga_amls(p.head, p.activations, target, config, pool, [&](const Progress& now) {
    const bool moving = now.note.empty();
    between += moving;
    levels += !moving;
    EXPECT_EQ(now.done, levels);
    if (moving) {
      EXPECT_GT(now.share, last);
    }
    last = now.share;
    return true;
  });
  EXPECT_LE(last, 1.0);
  EXPECT_EQ(asked.log_p, e.log_p);
  EXPECT_EQ(asked.cost.score_evals, e.cost.score_evals);
  EXPECT_GE(between, 2 * config.kernel.burn_in);
  // Halfway to the third level of the first replica.
  const double half_level =
      0.5 * std::log(config.survive_fraction) / config.likely_log_p / static_cast<double>(config.replicas);
  double second = 0.0;
  const Estimate stopped = ga_amls(p.head, p.activations, target, config, pool, [&](const Progress& now) {
    if (!now.note.empty()) second = now.share;
    return now.done < 2 || now.share < second + 0.99 * half_level;
  });
  EXPECT_EQ(stopped.status, Status::kBudgetSpent);
  EXPECT_EQ(stopped.levels.size(), 2u);
  EXPECT_LT(stopped.levels[1].moves.moves, config.kernel.moves);
  EXPECT_LT(stopped.cost.score_evals, e.cost.score_evals);
}

// A run that was cut short is not a run that died out.
TEST(GaAmls, StoppedBetweenRunsItKeepsTheFinishedOnes) {
  const GroupsProblem p = two_groups(2000, 1);
  const Target target({0}, p.head);
  ThreadPool pool(2);
  GaAmlsConfig config = quick(GaPrior::kStudentT);
  config.replicas = 1;
  const Estimate first = ga_amls(p.head, p.activations, target, config, pool);
  config.replicas = 3;
  const Estimate stopped = ga_amls(p.head, p.activations, target, config, pool, [](const Progress& now) {
    return !now.note.starts_with("run 2 of 3, level 2,");
  });
  EXPECT_EQ(stopped.log_p, first.log_p);
  EXPECT_EQ(stopped.status, Status::kOk);
  ASSERT_FALSE(stopped.warnings.empty());
  EXPECT_NE(fmt::format("{}", fmt::join(stopped.warnings, "|")).find("1 of 3 runs were finished"),
            std::string::npos);
}

TEST(GaAmls, RefusesWhatItCannotDo) {
  const GroupsProblem p = two_groups(200, 4);
  const Target target({0}, p.head);
  ThreadPool pool(1);
  Activations unknown = p.activations;
  unknown.last_tokens.clear();
  EXPECT_THROW(ga_amls(p.head, unknown, target, quick(GaPrior::kConditioned), pool), InputError);
  GaAmlsConfig config = quick(GaPrior::kStudentT);
  config.kernel.moves = 0;
  EXPECT_THROW(ga_amls(p.head, p.activations, target, config, pool), InputError);
  config = quick(GaPrior::kStudentT);
  config.replicas = 0;
  EXPECT_THROW(ga_amls(p.head, p.activations, target, config, pool), InputError);
  EXPECT_EQ(value_named<GaPrior>("student_t_matched"), GaPrior::kStudentTMatched);
  EXPECT_FALSE(value_named<GaPrior>("cauchy"));
  EXPECT_EQ(value_named<KernelKind>("pcn"), KernelKind::kPcn);
}

}  // namespace
}  // namespace deeptail
