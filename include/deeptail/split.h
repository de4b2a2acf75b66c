// Splitting by a score of your own: any model, any event. deeptail brings levels, moves, replicas and intervals.
//
//   CalledScores scores({.score = my_function, .batch = 1024});
//   const Estimate e = split(law, scores, {.budget = 1e5}, pool);
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "deeptail/estimators.h"
#include "deeptail/event.h"
#include "deeptail/law.h"
#include "deeptail/watch.h"

namespace [[gnu::visibility("default")]] deeptail {

struct ScoredRows {
  TokenBatch inputs;                          // as many as a batch has, always
  std::span<const std::uint64_t> numbers;     // [batch, numbers]
  std::span<const std::uint32_t> which = {};  // [batch]: the event that each row is asked about
};
// out: [batch], at least 0 for the event. A function of its own row alone: the same whenever and in whatever batch it is
// asked. False: stop, now. Never called by two threads at a time.
using BatchScore = std::function<bool(const ScoredRows& rows, std::span<double> out)>;

struct CalledScoresConfig {
  BatchScore score;
  BatchScore exact = {};    // a second, slower score that decides where the first is within `near` of a level
  double near = 0.0;        // the two differ by at most this
  std::size_t batch = 256;  // rows
  // Smaller batches that may be asked for where fewer rows wait; none: all batches have one shape.
  std::vector<std::size_t> smaller = {};
  std::size_t numbers =
      0;  // uniform numbers that a score takes besides the input, for answers that are drawn
  std::string text = "score >= 0";  // the event, for people
  void validate() const;
};

// Rows of many populations, joined into batches of one shape: every population is an ordinary caller on a thread of its
// own, and what waits at the same time is scored together.
class CalledScores {
 public:
  explicit CalledScores(CalledScoresConfig config);
  ~CalledScores();  // nobody may wait any more
  CalledScores(const CalledScores&) = delete;
  CalledScores& operator=(const CalledScores&) = delete;

  // What the scores were and cost.
  struct Counts {
    std::uint64_t rows = 0, exact_rows = 0;  // asked for
    std::uint64_t batches = 0;               // of both functions
    std::uint64_t padded = 0;                // rows that only filled a batch
    std::uint64_t farther = 0;               // rows whose two scores differ by more than `near`
    double seconds = 0.0;                    // inside the functions
  };
  Counts counts() const;
  const CalledScoresConfig& config() const;
  // The functions said stop, or failed: no score since then is one.
  bool gave_up() const;
  void rethrow() const;  // what a function threw

  class Service;
  Service& service() const { return *service_; }

 private:
  std::unique_ptr<Service> service_;
};

// Budget 0: 1e5 scores. Work is counted in scores, as one forward pass each; with a model it is counted as if that
// computed every one by a pass of its own. The watch is told scores. Stopped, by it or by the functions, it tells what
// the finished replicas say. Throws what the functions threw.
Estimate split(const InputLaw& law, CalledScores& scores, const TokensplitConfig& config, ThreadPool& pool,
               const Watch& watch = {}, const Transformer* model = nullptr);

// Several events about inputs of one law, whose rows share batches: ScoredRows::which counts them. Each estimate is the one
// that split gives, and is told as soon as it is there, one at a time; diagnostics count the rows of all of them together.
// Stopped, those that began are told as they are. The watch is told scores of all of them.
struct SplitManyOptions {
  std::size_t at_once = 32;  // events
  std::function<void(std::size_t event, Estimate estimate)> on_estimate;
};
void split_many(const InputLaw& law, CalledScores& scores, std::span<const std::string> events,
                const TokensplitConfig& config, const SplitManyOptions& options, const Watch& watch = {},
                const Transformer* model = nullptr);

// --- states of your own ---

// States are known by their numbers; whoever made them keeps them. Copies of a particle share its state. Every function
// returns false to stop.
struct StateFunctions {
  // states: [n] new ones, independent draws from the prior.
  std::function<bool(std::uint64_t seed, std::span<std::int64_t> states)> sample;
  // proposals: [n] new ones, each from one of the states, in a way that is reversible under the prior.
  std::function<bool(std::span<const std::int64_t> states, std::uint64_t seed,
                     std::span<std::int64_t> proposals)>
      mutate;
  std::function<bool(std::span<const std::int64_t> states, std::span<double> out)> score;
  std::function<bool(std::span<const std::int64_t> states)> drop = {};  // nobody asks for these any more
};
struct SplitStatesConfig {
  double budget = 1e5;  // scores
  std::size_t replicas = 8;
  std::uint64_t seed = 1;
  double survive_fraction = 0.2;
  std::size_t moves = 16;     // per level
  std::size_t particles = 0;  // per replica; 0: what the budget allows
  std::size_t kept = 3;       // states with the event that are not dropped
  void validate() const;
};
struct StatesEstimate {
  Estimate estimate = {};
  std::vector<std::int64_t> states = {};  // some that have the event
};
// A pilot finds levels, replicas on these give the estimate. The watch is told scores.
StatesEstimate split_states(const StateFunctions& functions, const SplitStatesConfig& config,
                            const Watch& watch = {});

}  // namespace deeptail
