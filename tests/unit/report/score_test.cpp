// Scores of a run against numbers worked out by hand.
#include <cmath>

#include "deeptail/report.h"
#include "report/run_fixture.h"

namespace deeptail {
namespace {

const double kLn2 = std::log(2.0);

TEST(Score, LossesAreMeansOverTargetsWithTheirErrors) {
  auto run = small_run();
  run.items = {estimate(1, 100, 0.2), estimate(2, 10, 0.01)};  // twice the truth, and the truth
  ThreadPool pool(1);
  const Report report = make_report(run, pool);
  ASSERT_EQ(report.scores.size(), 1u);
  const Score& s = report.scores[0];
  EXPECT_EQ(s.targets, 2u);
  // Of the values (a, 0) the mean is a/2 and the standard error |a|/2.
  EXPECT_NEAR(s.loss[kLogSquared].mean, kLn2 * kLn2 / 2.0, 1e-14);
  EXPECT_NEAR(s.loss[kLogSquared].error, kLn2 * kLn2 / 2.0, 1e-14);
  EXPECT_NEAR(s.loss[kItakuraSaito].mean, (kLn2 - 0.5) / 2.0, 1e-14);
  EXPECT_NEAR(s.loss[kSquared].mean, 0.01 / 2.0, 1e-16);
  EXPECT_TRUE(std::isnan(s.loss[kItakuraSaitoCalibrated].mean)) << "two targets are too few for a fit";
  // Without a shift alpha = 2 is Itakura-Saito; the shift chosen for truths from 0.01 on changes little.
  EXPECT_NEAR(s.loss[kOversight].mean, (kLn2 - 0.5) / 2.0, 0.05 * (kLn2 - 0.5) / 2.0);
  EXPECT_NEAR(s.mean_log10_ratio, std::log10(2.0) / 2.0, 1e-14);
  EXPECT_NEAR(s.mean_square_log10, std::log10(2.0) * std::log10(2.0) / 2.0, 1e-14);
  EXPECT_EQ(s.within_2, 2u);
  EXPECT_EQ(s.zeros, 0u);
}

TEST(Score, TheShiftIsThatOfTheRarestTruth) {
  auto run = small_run();
  run.items = {estimate(1, 100, 0.2), estimate(2, 10, 0.01)};
  ThreadPool pool(1);
  const Report report = make_report(run, pool);
  EXPECT_EQ(report.epsilon_rule[kBenchmarking], "heuristic");
  EXPECT_NEAR(report.spb[kBenchmarking].epsilon, 0.01 * 0.01 / 100.0, 1e-20);  // 0.01 qmin / mmax
  EXPECT_EQ(report.epsilon_rule[kAudit], "corollary");
  const double expected =
      (spb_weighted(report.spb[0], 0.1, 0.2) + spb_weighted(report.spb[0], 0.01, 0.01)) / 2.0;
  EXPECT_NEAR(report.scores[0].loss[kBenchmarking].mean, expected, 1e-15);
}

TEST(Score, ReplicasOfOneTargetCountOnce) {
  auto run = small_run();
  run.items = {estimate(1, 100, 0.2), estimate(1, 100, 0.05), estimate(2, 10, 0.01)};
  run.items[1].replica = 1;
  ThreadPool pool(1);
  const Score s = make_report(run, pool).scores[0];
  EXPECT_EQ(s.targets, 2u);
  EXPECT_EQ(s.estimates, 3u);
  EXPECT_NEAR(s.loss[kLogSquared].mean, kLn2 * kLn2 / 2.0, 1e-14);
  EXPECT_NEAR(s.mean_log10_ratio, 0.0, 1e-15);
}

TEST(Score, ZerosAreInfiniteOnlyWhereALogarithmIsTaken) {
  auto run = small_run();
  run.items = {estimate(1, 100, 0.0), estimate(2, 10, 0.01)};
  ThreadPool pool(1);
  const Score s = make_report(run, pool).scores[0];
  EXPECT_EQ(s.zeros, 1u);
  EXPECT_TRUE(std::isinf(s.loss[kLogSquared].mean));
  EXPECT_TRUE(std::isinf(s.loss[kItakuraSaito].mean));
  for (const ReportLoss k : {kBenchmarking, kOversight, kStress, kAudit})
    EXPECT_TRUE(std::isfinite(s.loss[k].mean)) << k;
  EXPECT_EQ(s.mean_log10_ratio, 0.0) << "of the other estimate alone";
}

TEST(Score, NoiseFloorOfThePair) {
  auto run = small_run();
  run.items = {estimate(1, 100, 0.2), estimate(2, 10, 0.01)};
  ThreadPool pool(1);
  const Report report = make_report(run, pool);
  const std::vector<std::uint64_t> counts{100, 10};
  const NoiseFloor floor = noise_floor(report.spb[0], counts, 1000);
  EXPECT_NEAR(report.pairs[0].noise[0].mean, floor.mean, 1e-15);
  EXPECT_NEAR(report.pairs[0].noise[0].error, floor.sd, 1e-15);
  EXPECT_EQ(report.pairs[0].targets, 2u);
}

TEST(Coverage, IntervalsAreWidenedByTheNoiseOfTheTruth) {
  // Half-width ln 2 and a count of 100 with noise 1.96/10: together sqrt(0.6931^2 + 0.196^2) = 0.7203.
  RunItem item = estimate(1, 100, 0.1);
  const auto truth_at = [&](double log_distance) {
    item.log_p = std::log(item.q()) - log_distance;
    item.log_low = item.log_p - kLn2;
    item.log_high = item.log_p + kLn2;
    return truth_against_interval(item);
  };
  EXPECT_EQ(truth_at(0.0), 0);
  EXPECT_EQ(truth_at(0.715), 0) << "outside the bare interval, inside the widened one";
  EXPECT_EQ(truth_at(0.725), 1);
  EXPECT_EQ(truth_at(-0.715), 0);
  EXPECT_EQ(truth_at(-0.725), -1);
}

TEST(Coverage, AZeroIsJudgedByItsUpperBound) {
  RunItem item = estimate(1, 100, 0.0);
  item.log_low = -INFINITY;
  item.log_high = std::log(0.09);  // 0.1 is within 1.96/10 of it on the log scale
  EXPECT_EQ(truth_against_interval(item), 0);
  item.log_high = std::log(0.08);
  EXPECT_EQ(truth_against_interval(item), 1);
}

TEST(Average, OfMeansAndErrors) {
  const MeanError cells[] = {{1.0, 0.3}, {3.0, 0.4}};
  EXPECT_DOUBLE_EQ(average(cells).mean, 2.0);
  EXPECT_DOUBLE_EQ(average(cells).error, 0.25);  // sqrt(0.09 + 0.16) / 2
}

TEST(Report, HeadlineIsTheSettingNamedLikeItsMethodElseTheDearest) {
  auto run = small_run();
  run.items = {estimate(1, 100, 0.1, "qld"), estimate(1, 100, 0.1, "qld", "qld/other"),
               estimate(1, 100, 0.1, "mc", "mc/1"), estimate(1, 100, 0.1, "mc", "mc/2")};
  for (std::size_t i = 0; i < 4; ++i)
    run.items[i].cost.forward_equivalents = 10.0 * static_cast<double>(i + 1);
  ThreadPool pool(1);
  const Report report = make_report(run, pool);
  std::vector<std::string> shown;
  for (const ReportVariant& v : report.variants)
    if (v.headline) shown.push_back(v.name);
  EXPECT_EQ(shown, (std::vector<std::string>{"qld", "mc/2"}));
}

TEST(Report, TruthsThatCannotBeScoredAreCounted) {
  auto run = small_run();
  run.items = {estimate(1, 100, 0.1), estimate(2, 0, 0.1), estimate(3, 1000, 0.9)};
  ThreadPool pool(1);
  EXPECT_EQ(make_report(run, pool).unscored, 2u);
  EXPECT_EQ(make_report(run, pool).scored(), 1u);
  run.items.clear();
  EXPECT_THROW(make_report(run, pool), InputError);
}

TEST(Report, ItemsWithoutTruthCountForCostsAndIntervalsOnly) {
  auto run = small_run();
  run.items = {estimate(1, 100, 0.2), without_truth(estimate(2, 0, 0.0)), without_truth(estimate(3, 0, 0.5))};
  run.items[2].cost.forward_equivalents = 1e4;
  ThreadPool pool(1);
  const Report report = make_report(run, pool);
  EXPECT_EQ(report.without_truth, 2u);
  EXPECT_EQ(report.unscored, 0u);
  const Score& s = report.scores[0];
  EXPECT_EQ(s.targets, 3u);
  EXPECT_EQ(s.scored_targets, 1u);
  EXPECT_EQ(s.estimates, 3u);
  EXPECT_EQ(s.scored, 1u);
  EXPECT_EQ(s.ratios, 1u);
  EXPECT_EQ(s.zeros, 1u);
  EXPECT_EQ(s.widths, 2u) << "the zero has no lower end";
  EXPECT_EQ(s.inside + s.too_low + s.too_high, 1u);
  EXPECT_NEAR(s.mean_log10_forwards, (2.0 + 2.0 + 4.0) / 3.0, 1e-12);
  EXPECT_NEAR(s.loss[kLogSquared].mean, kLn2 * kLn2, 1e-14) << "of the one that has a truth";
  EXPECT_EQ(report.pairs[0].targets, 3u);
  EXPECT_EQ(report.pairs[0].scored, 1u);
}

TEST(Report, ARunWithoutAnyTruthHasNoLosses) {
  auto run = small_run();
  run.items = {without_truth(estimate(1, 0, 0.2)), without_truth(estimate(2, 0, 0.1))};
  ThreadPool pool(1);
  const Report report = make_report(run, pool);
  EXPECT_EQ(report.scored(), 0u);
  for (const MeanError& loss : report.scores[0].loss) EXPECT_TRUE(std::isnan(loss.mean));
  EXPECT_TRUE(report.differences.empty());
  EXPECT_EQ(report.scores[0].mean_seconds, 2.0);
}

// Two settings on targets 1..n: a is exact, b is off by the factor m.
Run exact_and_off(TokenId n, double m) {
  auto run = small_run();
  for (TokenId t = 1; t <= n; ++t) {
    const auto count = static_cast<std::uint64_t>(10 * t);
    run.items.push_back(estimate(t, count, 0.01 * t, "qld"));
    run.items.push_back(estimate(t, count, 0.01 * t * (t % 2 ? m : 1.0 / m), "mc"));
  }
  return run;
}

TEST(Differences, AreOfPairedLossesAndDoNotDependOnThreads) {
  const auto run = exact_and_off(8, 3.0);
  ThreadPool one(1), three(3);
  const Report report = make_report(run, one);
  ASSERT_EQ(report.differences.size(), 1u);
  const Difference& d = report.differences[0];
  EXPECT_EQ(report.variants[d.a].method, "qld");
  EXPECT_EQ(report.variants[d.b].method, "mc");
  EXPECT_EQ(d.targets, 8u);
  for (std::size_t k = 0; k < kReportProfiles; ++k) {
    EXPECT_NEAR(d.loss[k].mean, report.scores[0].loss[k].mean - report.scores[1].loss[k].mean,
                1e-9 * std::abs(d.loss[k].mean));
    EXPECT_LT(d.loss[k].low, d.loss[k].mean);
    EXPECT_LT(d.loss[k].mean, d.loss[k].high);
  }
  EXPECT_LT(d.loss[kBenchmarking].high, 0.0) << "worse on every target";
  EXPECT_EQ(make_report(run, three).differences[0].loss[kAudit].low, d.loss[kAudit].low);
}

TEST(Differences, OneTargetSaysNothing) {
  ThreadPool pool(1);
  EXPECT_TRUE(make_report(exact_and_off(1, 3.0), pool).differences.empty());
  auto run = exact_and_off(3, 3.0);
  run.items[1].target = run.items[3].target = {7};  // one target in common
  sort_items(run.items);
  EXPECT_TRUE(make_report(run, pool).differences.empty());
}

TEST(Whitening, HeldOutVariancesBecomeFlat) {
  constexpr std::size_t kN = 4096, kD = 3;
  Activations a{.n = kN, .d_model = kD};
  a.values.resize(kN * kD);
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < kN; ++i)
    for (std::size_t j = 0; j < kD; ++j) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const double u = static_cast<double>(state >> 11) / 9007199254740992.0;
      a.values[i * kD + j] = static_cast<float>(std::sqrt(12.0) * (u - 0.5) * std::pow(10.0, double(j)));
    }
  ThreadPool pool(1);
  const WhiteningProfile w = whitening_profile(a, pool);
  const double expected[] = {1e4, 1e2,
                             1.0};  // largest first; 5 standard errors of 1024 uniform squares are 14%
  for (std::size_t j = 0; j < kD; ++j) {
    EXPECT_NEAR(w.before[j] / expected[j], 1.0, 0.14);
    EXPECT_NEAR(w.after[j], 1.0, 0.16);
  }
}

}  // namespace
}  // namespace deeptail
