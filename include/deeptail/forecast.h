// The worst of n prompts: how large the largest of n chances will be that a prompt brings a text about
// (docs/forecast.md). Forecast from the chances of a few prompts by extreme-value theory (Jones et al. 2025,
// arXiv 2502.16797), and found by splitting where a law makes new prompts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/law.h"
#include "deeptail/load.h"
#include "deeptail/patterns.h"
#include "deeptail/sampling.h"
#include "deeptail/watch.h"

namespace [[gnu::visibility("default")]] deeptail {

// The chance that one in n prompts reaches, natural log, with an interval; and an interval for the largest chance of n
// prompts, which is another one for every n prompts that are drawn.
struct WorstOf {
  double queries = 0.0;  // n
  double log_p = 0.0, log_low = 0.0, log_high = 0.0;
  double log_worst_low = log_low, log_worst_high = log_high;
};

// --- forecast ---

// The upper tail of psi = -log(-log p): log Pr[psi >= x] = slope x + offset, by least squares on the largest.
struct TailFit {
  double slope = 0.0, offset = 0.0;
  std::size_t top = 0;  // prompts that it was fitted to
  double log_p(double queries) const;
};
// log_p: [prompts], minus infinity for 0. Throws InputError where fewer than 3 differ from 0 and each other.
TailFit fit_tail(std::span<const double> log_p, std::size_t top);

struct ForecastConfig {
  std::size_t top = 0;          // of the prompts; 0: a tenth of them, 10 to 100
  std::size_t resamples = 400;  // of the bootstrap
  double confidence = 0.95;
  std::uint64_t seed = 1;
  void validate() const;
  std::size_t top_of(std::size_t prompts) const;
};
// Extrapolates beyond all prompts where a query asks for it. Intervals: quantiles over resampled prompts; for the largest of
// n, over the largest of n prompts of each resample's tail.
std::vector<WorstOf> forecast_worst(std::span<const double> log_p, std::span<const double> queries,
                                    const ForecastConfig& config);

// Of exactly these prompts, each as likely as the others: where n is more than there are, the largest.
std::vector<WorstOf> worst_of_pool(std::span<const double> log_p, std::span<const double> queries);

// --- the chances themselves ---

// The chance that what a model says after a prompt begins with a text, by teacher forcing: along the tokens that
// the tokenizer makes of it, and at each of them all tokens that complete it. Other ways to write the text in
// tokens are left out; how much they can add at most is kept.
class Elicitation {
 public:
  // sampling: as deployed; max_tokens does not matter. The model and the pool must outlive it. Throws InputError
  // where the model has no tokenizer or too few positions.
  Elicitation(const LoadedModel& model, std::string_view text, SamplingConfig sampling,
              std::size_t longest_prompt, ThreadPool& pool);
  ~Elicitation();

  // Natural logs: out [prompts.size()], minus infinity for 0.
  void log_chances(const Inputs& prompts, std::span<double> out);
  // Of all that was asked, what was left out over the sum of chances: at most.
  double left_out() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// --- splitting ---

// log chances of inputs: out [inputs.size()], minus infinity for 0.
using LogChances = std::function<void(const Inputs& inputs, std::span<double> out)>;

struct WorstConfig {
  double budget = 2e5;                   // chances computed, about
  std::size_t replicas = 8, moves = 10;  // moves: of a particle at each level
  double survive_fraction = 0.3;
  double confidence = 0.95;
  std::uint64_t seed = 1;
  void validate() const;
};

// Pr[p >= exp(level)] at rising levels.
struct ChanceCurve {
  std::vector<double> levels = {};  // of log p
  std::vector<double> log_share = {}, log_low = {}, log_high = {};
  std::vector<std::vector<double>> of_replicas = {};  // log shares, [replicas][levels]
  bool ended = false;         // nothing beyond the last level was found, though rarer prompts were asked for
  std::uint64_t chances = 0;  // computed
};
// Splitting on the law's parts with log p as the score: a pilot chooses levels until their share is so small that not one of
// most_queries prompts is above, with 97.5 % chance; replicas on these give the shares. The watch is told chances.
ChanceCurve chance_curve(const InputLaw& law, const LogChances& chances, double most_queries,
                         const WorstConfig& config, ThreadPool& pool, const Watch& watch = {});
// Where the curve crosses 1 / n; between levels linear in logs. Minus infinity below the first level, beyond the end the last
// one, and for upper ends 1 unless the curve ended there. Its error is that of the mean of where the replicas' own curves cross:
// they agree on heights far better than on how rare these are. The largest of n prompts is where the curve crosses E / n, with E
// exponential: the share beyond it is. Its errors, and how far it is from p(n), are added as squares.
std::vector<WorstOf> worst_by_curve(const ChanceCurve& curve, std::span<const double> queries,
                                    double confidence = 0.95);

// --- all of it ---

struct ForecastRequest {
  std::string text = {};         // that answers are to start with
  SamplingConfig sampling = {};  // as deployed; max_tokens does not matter
  std::vector<double> queries = {};
  std::uint64_t prompts =
      1000;  // that the forecast is made from, where the law can make more than there are in a pool
  ForecastConfig fit = {};
  WorstConfig splitting = {};
  std::uint64_t seed = 1;
  void validate() const;
};

struct WorstForecast {
  std::uint64_t prompts = 0;                                   // whose chances the forecast was made from
  std::size_t top = 0;                                         // of them, that the tail was fitted to
  double log_mean = 0.0, log_median = 0.0, log_largest = 0.0;  // of these chances
  double left_out = 0.0;  // by other ways to write the text in tokens, over the sum of all chances: at most
  std::vector<WorstOf> forecast = {};   // [queries]; empty where the chances do not tell a tail
  std::string no_forecast = {};         // why
  std::vector<WorstOf> pool = {};       // [queries]: exact, where the law is a pool of prompts
  std::vector<WorstOf> splitting = {};  // [queries]: where the law makes new prompts
  bool splitting_ended = false;         // nothing above the last of them was found
  std::uint64_t chances = 0;            // computed in all
  double seconds = 0.0;
};
// The watch is told chances.
WorstForecast forecast_prompts(const LoadedModel& model, const InputLaw& law, const ForecastRequest& request,
                               ThreadPool& pool, const Watch& watch = {});

}  // namespace deeptail
