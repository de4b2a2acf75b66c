// Estimates of a rare event's probability: every method gives the same Estimate. Here are the two methods that
// take any law and any event, plain sampling (mc) and splitting on tokens (tokensplit).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "deeptail/activations.h"
#include "deeptail/device.h"
#include "deeptail/enum_names.h"
#include "deeptail/event.h"
#include "deeptail/inputs.h"
#include "deeptail/law.h"
#include "deeptail/load.h"
#include "deeptail/model.h"
#include "deeptail/splitting.h"
#include "deeptail/watch.h"

namespace [[gnu::visibility("default")]] deeptail {

// --- the result of any method ---

enum class Status {
  kOk,
  kNotReachedUpperBound,  // the event was never seen: p is 0, and only the interval's upper end has a meaning
  kExtinct,
  kBudgetSpent,
};
enum class Guarantee { kUnbiased, kConsistent, kModelBased, kExact };
template <>
struct EnumNames<Status> {
  static constexpr std::string_view kAll[] = {"ok", "not_reached_upper_bound", "extinct", "budget_spent"};
};
template <>
struct EnumNames<Guarantee> {
  static constexpr std::string_view kAll[] = {"unbiased", "consistent", "model_based", "exact"};
};

struct Cost {
  std::uint64_t forward = 0, backward = 0;
  std::uint64_t score_evals = 0;     // re-scored proposals (partial forward passes), or scores of activations
  std::uint64_t logits = 0;          // looked at while re-scoring
  double flops = 0.0;                // of the algorithm, whatever the engine saved
  double forward_equivalents = 0.0;  // flops over those of one plain pass over all positions
  double seconds = 0.0;
  // Of sampled answers: flops over those of one token decoded in the middle of a text; else 0.
  double tokens = 0.0;
};

// An input that made the model say the target.
struct Trigger {
  std::uint64_t sample = 0;
  std::vector<TokenId> tokens = {};
  std::string text = {};  // decoded, where there is a tokenizer
  double margin = 0.0;    // 0 where it was not computed
  // Of events about what follows: the tokens of the answer, and their texts.
  std::vector<TokenId> answer = {};
  AnswerText said = {};
};

// What the inputs that trigger the event have in common at one position.
struct DecidingPosition {
  std::size_t position = 0;
  TokenId token = 0;   // the most frequent one
  double share = 0.0;  // of the triggering inputs that hold it
  double prior = 0.0;  // of all inputs
  std::string text = {};
};

// What a result was made from.
struct Provenance {
  std::string model = {}, dist = {};
  std::string model_sha256 = {};  // deeptail::model_sha256, or that of the files with activations and head
  std::string dist_sha256 = {};
  std::string device = "cpu";
};

// The settings of a method as they were used, by the keys that make_method takes. Nothing stands for what the
// method found out for itself.
using SettingValue = std::variant<std::monostate, std::uint64_t, double, std::string>;
using SettingValues = std::vector<std::pair<std::string, SettingValue>>;

// Below this an answer has never been compared with a count, and with no closed form but one or two.
inline constexpr double kSmallestChecked = 1e-12;

struct Estimate {
  std::string method = {};
  std::vector<TokenId> target = {};            // of events about the next token
  std::string event = {};                      // for people: says 310
  std::string event_json = {}, law_json = {};  // objects; "": event says it all
  double log_p = 0.0;                          // natural log; minus infinity for 0
  double log_low = 0.0, log_high = 0.0;        // the interval
  double confidence = 0.95;
  Status status = Status::kOk;
  Guarantee guarantee = Guarantee::kUnbiased;
  std::uint64_t seed = 0;
  SettingValues settings = {};
  std::string chosen = {};  // the method that auto chose
  Cost cost = {};
  std::vector<Level> levels = {};  // of methods that have levels
  std::vector<std::string> warnings = {};
  std::vector<std::pair<std::string, double>> diagnostics = {};  // figures of one method's own, by name
  std::vector<Trigger> triggers = {};
  std::vector<DecidingPosition> positions = {};  // those where triggering inputs differ most from all inputs
  // Of methods with replicas. log_certain_low: by Markov's inequality p is below it with at most 5% chance.
  std::vector<double> replica_log_p = {};
  double log_certain_low = -std::numeric_limits<double>::infinity();
  Provenance provenance = {};
};
Provenance provenance_of(const LoadedModel& model, const Distribution& dist);
Provenance provenance_of(const LoadedModel& model, const InputLaw& law);
// Gives the estimate's triggers and positions their text; without a tokenizer they have none.
void decode_tokens(Estimate& estimate, const std::optional<NamedTokenizer>& tokenizer);

// What `deeptail estimate --json` prints: one line. Infinite values are the strings "inf" and "-inf".
std::string to_json(const Estimate& estimate);

// --- what the model says on sampled inputs ---

// Runs samples of a distribution through a model. Holds the scratch space, so that many calls allocate
// little. The outcome for a sample depends on the seed and its number alone.
class InputRunner {
 public:
  // All must outlive it.
  InputRunner(const Transformer& model, const Distribution& dist, std::uint64_t seed, ThreadPool& pool);

  // The tokens said (argmax) after samples [first, first + n): [n]. Valid until the next call.
  std::span<const TokenId> run(std::uint64_t first, std::size_t n);
  // Input i of the last run: [length].
  std::span<const TokenId> input(std::size_t i) const { return residuals_.input(i); }

 private:
  const Transformer& model_;
  ThreadPool& pool_;
  ResidualRunner residuals_;
  std::vector<TokenId> said_;   // [n]
  AlignedVector<float> resid_;  // [n, d_model]
};

// Calls run(first, n) for consecutive batches that cover [first, first + count), or less when the watch says
// so, which is told inputs. A batch takes about half a second. Returns the number of inputs done.
std::uint64_t for_each_batch(std::uint64_t first, std::uint64_t count,
                             const std::function<void(std::uint64_t first, std::size_t n)>& run,
                             const Watch& watch = {});
// The same with what was said.
std::uint64_t for_each_batch(
    InputRunner& runner, std::uint64_t first, std::uint64_t count,
    const std::function<void(std::uint64_t first, std::span<const TokenId> said)>& visit,
    const Watch& watch = {});

// --- mc ---

struct Interval {
  double low, high;
};
// The exact (Clopper-Pearson) interval of a probability after `hits` in n trials: covers it with at least the
// confidence.
Interval clopper_pearson(std::uint64_t hits, std::uint64_t n, double confidence = 0.95);

struct McConfig {
  std::uint64_t budget = 1 << 16;  // forward passes
  std::uint64_t seed = 1;
  std::size_t max_triggers = 3;
  void validate() const;
};
// Plain sampling: the fraction of inputs on which the event happens, with a Clopper-Pearson interval. Any law
// and any event. The caller adds the provenance and the text of triggers. The watch is told inputs.
Estimate mc(const Transformer& model, const InputLaw& law, const Event& event, const McConfig& config,
            ThreadPool& pool, const Watch& watch = {});
// The argmax after independent tokens: quicker than by scores, and the same.
Estimate mc(const Transformer& model, const Distribution& dist, const Target& target, const McConfig& config,
            ThreadPool& pool, const Watch& watch = {});

// --- tokensplit ---

// Splitting on the token sequences themselves (docs/tokensplit.md). A pilot finds levels and moves;
// independent replicas on these, with random numbers of their own, give the estimate: their mean is unbiased.
// kNone: all particles are drawn from the law itself; kScan: also from laws that hold more of what a scan found; kAuto: and
// of what replicas found.
enum class Tilting { kAuto, kNone, kScan };
template <>
struct EnumNames<Tilting> {
  static constexpr std::string_view kAll[] = {"auto", "none", "scan"};
};
struct TokensplitConfig {
  // Forward-pass equivalents: flops over those of a plain pass over all positions. 0: tokensplit_budget().
  double budget = 0.0;
  std::size_t replicas = 8;
  double rel_error = 0.0;  // wanted relative standard error; less work when the pilot says less will do
  std::uint64_t seed = 1;
  std::size_t max_triggers = 3;
  double survive_fraction = 0.2;
  double forgotten = 0.1;      // moves per level go on until this much of the start is left
  std::size_t particles = 0;   // per replica at its last level; 0: what the budget allows
  double taper = 8.0;          // particles at the first level over those at the last
  std::size_t first_draw = 0;  // plain samples at the start of each replica; 0: from the budget
  std::size_t moves = 0;       // most per level; 0: from the budget
  Tilting tilt =
      Tilting::kAuto;  // rare tokens, and those that a scan finds, are drawn more often, with weights
  void validate() const;
};
// The default budget: what 1.9 million re-scored proposals cost, and at most 4e5 (1e5 for dt-1l, 4e5 for
// dt-4l); on a GPU twice that, and at most 1.6e6, which is still faster there and loses fewer modes.
double tokensplit_budget(const ModelConfig& config, const Distribution& dist, Device device = Device::kCpu);
double tokensplit_budget(const ModelConfig& config, const InputLaw& law, Device device = Device::kCpu);
// Any law and any event. The watch is told forward-pass equivalents.
Estimate tokensplit(const Transformer& model, const InputLaw& law, const Event& event,
                    const TokensplitConfig& config, ThreadPool& pool, const Watch& watch = {});
// static: the same on events with answers, of which the chances of a pattern are learnt beforehand. Budget 0: what
// static_budget() says (payoff.h), in whole texts.
Estimate static_split(const Transformer& model, const InputLaw& law, const Event& event,
                      const TokensplitConfig& config, ThreadPool& pool, const Watch& watch = {});
// The argmax after independent tokens.
Estimate tokensplit(const Transformer& model, const Distribution& dist, const Target& target,
                    const TokensplitConfig& config, ThreadPool& pool, const Watch& watch = {});

// --- tokensplit on a CUDA device (docs/cuda.md) ---

struct TokensplitTask {
  Target target;  // of one token
  TokensplitConfig config = {};
};
// Where the answers of many tasks go.
struct Answers {
  // Called as soon as a task is done, one at a time, in any order. cost.seconds is its share of the device's
  // time.
  std::function<void(std::size_t task, Estimate)> on_estimate;
  // For a task that cannot be done, with the reason; without it, the reason is thrown and ends all of them.
  std::function<void(std::size_t task, const std::string& why)> on_refusal = {};
};
inline constexpr std::size_t kTargetsAtOnce = 256;
// Many targets of one model and distribution, at most `at_once` side by side. Populations and random numbers
// are those of tokensplit(); margins differ by rounding. The watch is told forward-pass equivalents of all
// tasks together. Throws InputError where there is no usable device.
void tokensplit_many(const Transformer& model, const Distribution& dist,
                     std::span<const TokensplitTask> tasks, const Answers& answers,
                     std::size_t at_once = kTargetsAtOnce, const Watch& watch = {});
// One target.
Estimate tokensplit_on_cuda(const Transformer& model, const Distribution& dist, const Target& target,
                            const TokensplitConfig& config, const Watch& watch = {});

}  // namespace deeptail
