// Forecasts of the worst of n prompts against 100,000 prompts whose chances are computed, and splitting beside them: the
// table of docs/forecast.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "deeptail/forecast.h"

namespace deeptail {
namespace {

constexpr std::size_t kPrompts = 100000;
const std::vector<double> kQueries = {1e3, 1e4};

struct Tally {
  double squares = 0.0, bias = 0.0, n = 0.0, within_ten = 0.0, covered = 0.0, maxima = 0.0, held = 0.0;
  // largest: of many times n prompts.
  void add(const WorstOf& found, double truth, std::span<const double> largest) {
    for (const double one : largest) held += found.log_worst_low <= one && one <= found.log_worst_high;
    maxima += static_cast<double>(largest.size());
    const double error = (found.log_p - truth) / std::log(10.0);
    squares += error * error;
    bias += error;
    within_ten += std::abs(error) <= 1.0;
    covered += found.log_low <= truth && truth <= found.log_high;
    n += 1.0;
  }
  void print(const char* what, double queries) const {
    fmt::print("| {} | {:g} | {:.2f} | {:+.2f} | {:.0f} % | {:.0f} % | {:.0f} % |\n", what, queries,
               std::sqrt(squares / n), bias / n, 100.0 * within_ten / n, 100.0 * covered / n,
               100.0 * held / maxima);
  }
};

// The largest of n prompts, for all n of them that there are.
std::vector<double> maxima_of(std::span<const double> log_p, double n) {
  std::vector<double> out;
  const auto block = static_cast<std::size_t>(n);
  for (std::size_t first = 0; first + block <= log_p.size(); first += block)
    out.push_back(*std::max_element(log_p.begin() + static_cast<std::ptrdiff_t>(first),
                                    log_p.begin() + static_cast<std::ptrdiff_t>(first + block)));
  return out;
}

TEST(ForecastTails, AgainstAHundredThousandPrompts) {
  const LoadedModel model = load_model("dt-1l");
  ThreadPool pool;
  std::vector<std::vector<Tally>> from(3, std::vector<Tally>(kQueries.size()));
  for (const char* dist : {"english", "if"}) {
    const auto law = load_law(dist, model);
    for (const char* text : {" king", " castle", " 7"}) {
      Elicitation asked(model, text, {}, law->facts().max_length, pool);
      std::vector<double> log_p(kPrompts);
      asked.log_chances(sample_inputs(*law, 1, 0, kPrompts, pool), log_p);
      const std::vector<WorstOf> truth = worst_of_pool(log_p, kQueries);
      std::vector<std::vector<double>> maxima;
      for (const double n : kQueries) maxima.push_back(maxima_of(log_p, n));
      for (const auto& [row, m] : {std::pair{0, 100}, std::pair{1, 1000}})
        for (std::size_t r = 0; r < 40; ++r) {
          const auto some =
              std::span(log_p).subspan(r * static_cast<std::size_t>(m), static_cast<std::size_t>(m));
          const auto found = forecast_worst(some, kQueries, {.resamples = 200, .seed = r});
          for (std::size_t q = 0; q < kQueries.size(); ++q)
            from[static_cast<std::size_t>(row)][q].add(found[q], truth[q].log_p, maxima[q]);
        }
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        const ChanceCurve curve = chance_curve(
            *law, [&](const Inputs& inputs, std::span<double> out) { asked.log_chances(inputs, out); }, 1e4,
            {.budget = 1e5, .seed = seed}, pool);
        const auto found = worst_by_curve(curve, kQueries);
        for (std::size_t q = 0; q < kQueries.size(); ++q) from[2][q].add(found[q], truth[q].log_p, maxima[q]);
      }
      fmt::print("{} {}: largest {:.2e}, one in 1e3 {:.2e}, in 1e4 {:.2e}, left out {:.2g}\n", dist, text,
                 std::exp(*std::max_element(log_p.begin(), log_p.end())), std::exp(truth[0].log_p),
                 std::exp(truth[1].log_p), asked.left_out());
      std::fflush(stdout);
    }
  }
  const char* const names[] = {"forecast from 100", "forecast from 1000", "splitting, 1e5 chances"};
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t q = 0; q < kQueries.size(); ++q) from[row][q].print(names[row], kQueries[q]);
  for (std::size_t q = 0; q < kQueries.size(); ++q) {
    const Tally& splitting = from[2][q];
    EXPECT_LT(std::sqrt(splitting.squares / splitting.n), 0.25) << kQueries[q];
    // The truth, a quantile of the prompts, has an error of its own, of a third of a share at 1e4; the largest of n has
    // none, and is what the interval is for.
    EXPECT_GE(splitting.covered / splitting.n, 0.8) << kQueries[q];
    EXPECT_GE(splitting.held / splitting.maxima, 0.93) << kQueries[q];
    EXPECT_GE(from[1][q].within_ten / from[1][q].n, 0.8) << kQueries[q];
  }
}

}  // namespace
}  // namespace deeptail
