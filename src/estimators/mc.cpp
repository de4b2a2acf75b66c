#include <cmath>
#include <memory>

#include "core/stopwatch.h"
#include "deeptail/estimators.h"
#include "estimators/method_list.h"

namespace deeptail {

namespace {

// mc's inputs are numbered from here. Counts (truth) end before 2^62 and captured activations lie between,
// so no seed gives mc an input that another of them saw with that seed.
constexpr std::uint64_t kFirstMcSample = std::uint64_t{1} << 63;

// Samples, batch by batch, and on which of them the event happens.
class Trials {
 public:
  virtual ~Trials() = default;
  // [n], of samples [first, first + n). Valid until the next call.
  virtual std::span<const std::uint8_t> run(std::uint64_t first, std::size_t n) = 0;
  // Of the last run.
  virtual Trigger trigger(std::size_t i) const = 0;
  // Of all that was run, n inputs.
  virtual Cost cost(std::uint64_t n) const = 0;
};

// What is said after independent tokens.
class SaidTrials final : public Trials {
 public:
  SaidTrials(const Transformer& model, const Distribution& dist, const Target& target, std::uint64_t seed,
             ThreadPool& pool)
      : runner_(model, dist, seed, pool),
        target_(target),
        flops_(forward_flops(model.config(), dist.length())) {}

  std::span<const std::uint8_t> run(std::uint64_t first, std::size_t n) override {
    const std::span<const TokenId> said = runner_.run(first, n);
    happened_.resize(n);
    for (std::size_t i = 0; i < n; ++i) happened_[i] = target_.contains(said[i]);
    return happened_;
  }
  Trigger trigger(std::size_t i) const override {
    const auto input = runner_.input(i);
    return {.tokens = {input.begin(), input.end()}};
  }
  Cost cost(std::uint64_t n) const override {
    const auto passes = static_cast<double>(n);
    return {.forward = n, .flops = passes * flops_, .forward_equivalents = passes};
  }

 private:
  InputRunner runner_;
  const Target& target_;
  double flops_;
  std::vector<std::uint8_t> happened_;
};

// Any event, by its score.
class ScoredTrials final : public Trials {
 public:
  ScoredTrials(const Transformer& model, const InputLaw& law, const Event& event, std::uint64_t seed,
               ThreadPool& pool)
      : law_(law),
        event_(event),
        seed_(seed),
        pool_(pool),
        scorer_(event.scorer(model, law, {}, pool)),
        flops_(event.score_flops(model.config(), law)) {}

  std::span<const std::uint8_t> run(std::uint64_t first, std::size_t n) override {
    inputs_ = sample_inputs(law_, seed_, first, n, pool_);
    const std::vector<std::uint64_t> numbers = sample_numbers(event_, law_, seed_, first, n);
    scores_.resize(n);
    work_ += scorer_->scores({inputs_.batch(), numbers}, scores_);
    happened_.resize(n);
    for (std::size_t i = 0; i < n; ++i) happened_[i] = scores_[i] >= 0.0;
    return happened_;
  }
  Trigger trigger(std::size_t i) const override {
    const auto input = inputs_.sequence(i);
    Trigger trigger{.tokens = {input.begin(), input.end()}, .margin = scores_[i]};
    if (event_.answer_length() > 0) {
      const auto answer = scorer_->answers().sequence(i);
      trigger.answer.assign(answer.begin(), answer.end());
    }
    return trigger;
  }
  Cost cost(std::uint64_t) const override {
    return {.forward = work_.forwards, .flops = work_.flops, .forward_equivalents = work_.flops / flops_};
  }

 private:
  const InputLaw& law_;
  const Event& event_;
  std::uint64_t seed_;
  ThreadPool& pool_;
  std::unique_ptr<Scorer> scorer_;
  double flops_;  // of one score, at the most
  Inputs inputs_;
  std::vector<double> scores_;
  std::vector<std::uint8_t> happened_;
  Work work_;
};

// All but the target and the seconds.
Estimate mc_of(Trials& trials, const McConfig& config, const Watch& watch) {
  Estimate estimate{.method = "mc", .guarantee = Guarantee::kUnbiased, .seed = config.seed};
  std::uint64_t hits = 0;
  const auto count_hits = [&](std::uint64_t first, std::size_t n) {
    const std::span<const std::uint8_t> happened = trials.run(first, n);
    for (std::size_t i = 0; i < n; ++i) {
      if (!happened[i] || hits++ >= config.max_triggers) continue;
      estimate.triggers.push_back(trials.trigger(i));
      estimate.triggers.back().sample = first + i;
    }
  };
  const std::uint64_t n = for_each_batch(kFirstMcSample, config.budget, count_hits, watch);

  const Interval interval = clopper_pearson(hits, n, estimate.confidence);
  estimate.log_p = std::log(static_cast<double>(hits) / static_cast<double>(n));
  estimate.log_low = std::log(interval.low);
  estimate.log_high = std::log(interval.high);
  if (hits == 0) estimate.status = Status::kNotReachedUpperBound;
  if (hits > 0 && hits < 10)
    estimate.warnings.push_back(
        fmt::format("only {} of {} inputs gave the target: the interval is wide", hits, n));
  if (n < config.budget)
    estimate.warnings.push_back(fmt::format("ended after {} of {} inputs", n, config.budget));
  estimate.cost = trials.cost(n);
  return estimate;
}

}  // namespace

void McConfig::validate() const {
  if (budget == 0 || budget > std::uint64_t{1} << 62)
    throw InputError("budget {}: expected at least one forward pass, at most 2^62", budget);
}

Estimate mc(const Transformer& model, const Distribution& dist, const Target& target, const McConfig& config,
            ThreadPool& pool, const Watch& watch) {
  config.validate();
  const Stopwatch stopwatch;
  SaidTrials trials(model, dist, target, config.seed, pool);
  Estimate estimate = mc_of(trials, config, watch);
  estimate.target = target.ids();
  estimate.cost.seconds = stopwatch.seconds();
  return estimate;
}

Estimate mc(const Transformer& model, const InputLaw& law, const Event& event, const McConfig& config,
            ThreadPool& pool, const Watch& watch) {
  const Target* target = event.next_token();
  if (law.tables() != nullptr && target != nullptr)
    return mc(model, *law.tables(), *target, config, pool, watch);
  config.validate();
  const Stopwatch stopwatch;
  ScoredTrials trials(model, law, event, config.seed, pool);
  Estimate estimate = mc_of(trials, config, watch);
  if (target != nullptr) estimate.target = target->ids();
  estimate.cost.seconds = stopwatch.seconds();
  return estimate;
}

namespace {

constexpr const SettingRow* kMcSettings[] = {&kBudget};

Method make_mc(SettingReader& s) {
  McConfig config;
  s.take(kBudget, config.budget);
  config.validate();
  return {.enumerates = true,
          .unit = "inputs",
          .work = [config](const Question&) { return config.budget; },
          .run =
              [config](const Question& q, std::uint64_t seed, ThreadPool& pool, const Watch& watch) {
                McConfig c = config;
                c.seed = seed;
                return mc(*q.model, *q.law, *q.event, c, pool, watch);
              }};
}

}  // namespace

constinit const MethodRow kMcRow{
    .name = "mc", .help = "plain sampling", .settings = kMcSettings, .colour = 7, .make = make_mc};

}  // namespace deeptail
