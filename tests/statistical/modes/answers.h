// Estimates of problems and what they are worth.
#pragma once

#include "deeptail/estimators.h"
#include "problem.h"

namespace deeptail::modes {

struct Answer {
  std::size_t problem = 0;
  std::uint64_t seed = 0;
  double ratio = 0.0, low = 0.0, high = 0.0;  // over the truth
  double evaluations = 0.0, seconds = 0.0;
  double recall = 0.0;
  double unseen = 0.0;  // share of p from modes that one replica saw
  bool warned = false;

  bool within_two() const { return ratio >= 0.5 && ratio <= 2.0; }
  bool covered() const { return low <= 1.0 && 1.0 <= high; }
};

// Every problem with seeds first_seed, first_seed + 1, ..: [problems * n_seeds]. The same for any number of
// threads, but for times.
struct Plan {
  TokensplitConfig config = {};  // its budget in evaluations of the score
  std::uint64_t first_seed = 1;
  std::size_t n_seeds = 8, threads = 0;
  // About the next token of constructed_model, of constructed problems. 1.9e6 evaluations become the default budget
  // of the model, which is meant for as many changed inputs, and others in proportion.
  bool weights = false;
};
std::vector<Answer> run_problems(const Problems& problems, const Plan& plan);

struct Figures {
  double n = 0.0;
  double within_two = 0.0, below_half = 0.0, covered = 0.0;  // shares
  double mean_ratio = 0.0, error = 0.0;                      // its standard error
  double rms_log10 = 0.0;                                    // an answer of 0 counts as a factor of 1000
  double recall = 0.0, evaluations = 0.0, seconds = 0.0;     // means
  double warned = 0.0;
  std::size_t silent = 0;  // off by more than a factor of two without a warning
};
Figures figures_of(std::span<const Answer> answers);

struct Bars {
  double within_two = 0.99, below_half = 0.005, least_covered = 0.93, most_covered = 0.97, errors = 3.0,
         recall = 0.95, evaluations = 1.9e6, silent = 0.005;
};
// What falls short, a line each.
std::vector<std::string> shortfalls(const Figures& figures, const Bars& bars);

}  // namespace deeptail::modes
