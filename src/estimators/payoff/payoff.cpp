// payoff: chances are learnt, a pilot says how many branches and whether levels are wanted, then replicas.
#include "deeptail/payoff.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/statistics.h"
#include "core/stopwatch.h"
#include "estimators/method_list.h"
#include "estimators/payoff/sample.h"
#include "estimators/tokensplit/replicas.h"

namespace deeptail {

namespace {

constexpr std::uint64_t kLearnPart = 0, kPayoffPilotPart = 1, kPlainPart = 2, kLevelsPart = 3,
                        kPayoffReplicaParts = 16;
constexpr std::size_t kPilotBranches = 4, kMostBranches = 32, kMostAskedBranches = 4096;
constexpr double kMostShare = 0.05;  // of the answer, that one text may pay

// How much larger than their mean what texts pay may be on the whole: the upper end of Fay and Feuer's (1997) interval for a
// sum of weighted rare counts, in which one more text pays as much as the largest. Fewer than kFewPayers say nothing of
// what others would pay: then one more may pay 1, all that there is.
double log_most_of_weights(const WeightSums& sums, double confidence) {
  constexpr std::uint64_t kFewPayers = 4;
  const auto n = static_cast<double>(sums.count);
  const double squares = std::exp(sums.log_sum_squares - 2.0 * sums.log_sum), spread = squares - 1.0 / n;
  const double largest =
      sums.positive < kFewPayers && sums.positive < sums.count
          ? std::exp(std::min(-sums.log_sum, 300.0))
          : sums.largest_share() * std::max(0.0, spread / squares);  // 0 where all pay alike
  const double variance = std::max(0.0, spread) + largest * largest, mean = 1.0 + largest;
  if (!(variance > 1e-12)) return 0.0;
  const double degrees = 2.0 * mean * mean / variance;
  return std::log(0.5 * variance / mean * chi_squared_upper_quantile(0.5 - 0.5 * confidence, degrees));
}

// The upper end of independent texts. Where many pay, what they pay says it all, unless prompts are spread evenly, which only
// the replicas know of. Where few do neither is to be trusted alone.
double log_high_of(const PayoffSample& sample, const Estimate& e) {
  constexpr double kManyPayers = 30.0;
  const WeightSums all = sample.all();
  const bool many = all.effective() >= kManyPayers;
  if (many && sample.is_spread()) return e.log_high;
  const double by_texts = e.log_p + log_most_of_weights(all, e.confidence);
  return std::min(0.0, many ? by_texts : std::max(e.log_high, by_texts));
}

// Texts that each replica of a small budget starts from, so that they do not cost more than all of it; 0: as tokensplit
// has it.
std::size_t small_first_draw(double budget, std::size_t replicas) {
  constexpr double kShare = 0.2, kFewest = 48.0, kUsual = 256.0;
  const double n = std::max(kFewest, kShare * budget / static_cast<double>(replicas + 1));
  return n < kUsual ? static_cast<std::size_t>(n) : 0;
}

class Payoff {
 public:
  Payoff(const Transformer& model, const InputLaw& law, const ContinuationEvent& event,
         const PayoffConfig& config, ThreadPool& pool, const Watch& watch)
      : model_(model),
        law_(law),
        event_(event),
        config_(config),
        pool_(pool),
        watch_(watch),
        unit_(event.score_flops(model.config(), law)) {}

  Estimate run() {
    Estimate e{.method = "payoff", .guarantee = Guarantee::kUnbiased, .seed = config_.seed};
    learn();
    look();
    if (wants_levels())
      run_levels(e);
    else
      run_plain(e);
    e.cost.forward = work_.forwards;
    e.cost.score_evals = work_.rescored;
    e.cost.flops = work_.flops;
    e.cost.forward_equivalents = work_.flops / unit_;
    return e;
  }

 private:
  double left() const { return std::max(0.0, config_.budget - work_.flops / unit_); }

  void learn() {
    const LearnConfig learning = learning_within(config_.budget, derived_seed(config_.seed, kLearnPart));
    learnt_.emplace(event_.learnt(model_, law_, learning, pool_, &work_));
  }

  // Nothing of it enters the estimate.
  void look() {
    const auto n = static_cast<std::size_t>(std::clamp(0.1 * config_.budget, 64.0, 2048.0));
    PayoffSample pilot(model_, law_, *learnt_, config_.branches > 0 ? config_.branches : kPilotBranches, 1,
                       derived_seed(config_.seed, kPayoffPilotPart), pool_);
    pilot.run(0, n);
    work_ += pilot.work();
    const auto texts = static_cast<double>(n);
    const auto tried = static_cast<double>(config_.branches > 0 ? config_.branches : kPilotBranches);
    const double branch = pilot.branch_flops() / texts / tried;
    const double text = (pilot.work().flops - pilot.branch_flops()) / texts;
    // Least variance for the work: the square root of what both cost and vary, over each other.
    const PayoffSample::Spread spread = pilot.spread();
    branches_ = config_.branches;
    if (branches_ == 0) {
      const double best =
          branch > 0.0 ? std::sqrt(text / branch * tried * spread.branches / std::max(spread.between, 1e-3))
                       : 1.0;
      branches_ = static_cast<std::size_t>(std::clamp(best + 0.5, 1.0, static_cast<double>(kMostBranches)));
    }
    flops_per_text_ = text + branch * static_cast<double>(branches_);
    if (std::isinf(pilot.all().log_sum)) return;
    largest_share_ = pilot.all().largest_share();
    effective_ = pilot.all().effective();
  }

  bool wants_levels() const {
    if (config_.levels != PayoffLevels::kAuto) return config_.levels == PayoffLevels::kAlways;
    // A few texts that pay nearly all: there may be others that pay more still.
    constexpr double kFewTexts = 12.0;
    return effective_ > 0.0 && effective_ < kFewTexts && largest_share_ > 2.0 * kMostShare;
  }

  void run_plain(Estimate& e) {
    const auto fewest = static_cast<double>(4 * config_.replicas);
    const auto n = static_cast<std::uint64_t>(std::max(fewest, left() * unit_ / flops_per_text_));
    PayoffSample sample(model_, law_, *learnt_, branches_, config_.replicas,
                        derived_seed(config_.seed, kPlainPart), pool_);
    const std::uint64_t done = for_each_batch(
        0, n, [&](std::uint64_t first, std::size_t count) { sample.run(first, count); }, watch_);
    work_ += sample.work();
    std::vector<SplittingRun> runs;
    for (const PayoffSample::Replica& replica : sample.replicas()) {
      if (replica.texts == 0) continue;
      SplittingRun& run = runs.emplace_back();
      run.log_p = replica.log_mean();
      run.weighted = true;
      run.first.n = replica.texts;
      run.genealogy_variance = replica.relative_variance();
      e.replica_log_p.push_back(run.log_p);
    }
    fill(e, runs, done);
    if (done < n) e.warnings.push_back(fmt::format("ended after {} of {} texts", done, n));
    const WeightSums all = sample.all();
    const bool paid = !std::isinf(all.log_sum);
    if (paid) e.log_high = log_high_of(sample, e);
    e.diagnostics.insert(e.diagnostics.end(), {{"texts", static_cast<double>(done)},
                                               {"branches", static_cast<double>(branches_)},
                                               {"effective_texts", paid ? all.effective() : 0.0},
                                               {"largest_share", paid ? all.largest_share() : 0.0}});
    if (paid && all.largest_share() > kMostShare)
      e.warnings.push_back(
          fmt::format("one text pays {:.0f} % of the answer: others that pay more may not have been drawn; a "
                      "larger budget would tell",
                      100.0 * all.largest_share()));
    e.triggers = sample.triggers();
    if (e.triggers.size() > config_.max_triggers) e.triggers.resize(config_.max_triggers);
  }

  // share: of the replicas that were to run.
  void fill(Estimate& e, const std::vector<SplittingRun>& runs, std::uint64_t texts,
            double share = 1.0) const {
    const ReplicaSummary s = combine_replicas(runs, e.confidence, share);
    e.log_p = s.log_p;
    e.log_low = s.log_low;
    e.log_high = std::min(0.0, s.log_high);
    e.log_certain_low = s.log_certain_low;
    e.diagnostics = {{"relative_sd", s.relative_sd}};
    if (!std::isinf(e.log_p)) return;
    e.status = Status::kNotReachedUpperBound;
    e.log_high = std::log(clopper_pearson(0, std::max<std::uint64_t>(1, texts), e.confidence).high);
  }

  void run_levels(Estimate& e) {
    const ContinuationPayoff paying(*learnt_, branches_);
    const CpuPlace place{{.model = model_, .law = law_, .event = paying}};
    const double budget = std::max(1000.0, left());
    const TokensplitConfig config{.budget = budget,
                                  .replicas = config_.replicas,
                                  .seed = derived_seed(config_.seed, kLevelsPart),
                                  .first_draw = small_first_draw(budget, config_.replicas)};
    Meter meter(unit_, config_.budget, watch_);
    meter.add(work_.flops);
    PilotResult pilot =
        run_pilot(place, pilot_config(config, unit_), derived_seed(config.seed, 0), pool_, meter);
    work_ += pilot.work;
    meter.add(pilot.work.flops);
    if (pilot.plan.levels.empty()) {
      run_plain(e);
      return;
    }
    const Sizes sizes = sizes_of(config, pilot, unit_, 1);
    const ReplicaTask<CpuPlace> task{{place, config, unit_, pool_, meter}, pilot.plan, sizes};
    std::vector<Replicas> replicas = run_replicas<CpuPlace>(std::span(&task, 1), kPayoffReplicaParts);
    Replicas& all = replicas.front();
    work_ += all.work;
    TriggerPool triggers;
    for (const TriggerPool& of : all.triggers) triggers.append(of);
    const std::size_t asked = all.runs.size();
    std::erase_if(all.runs, [](const SplittingRun& run) { return was_stopped(run); });
    if (all.runs.empty()) {
      e.log_p = e.log_low = -std::numeric_limits<double>::infinity();
      e.log_high = 0.0;
      e.status = Status::kBudgetSpent;
      return;
    }
    if (all.runs.size() < asked) {
      e.guarantee = Guarantee::kConsistent;
      e.warnings.push_back(fmt::format("stopped: {} of {} replicas were finished", all.runs.size(), asked));
    }
    for (const SplittingRun& run : all.runs) e.replica_log_p.push_back(run.log_p);
    fill(e, all.runs, all.first.n, static_cast<double>(all.runs.size()) / static_cast<double>(asked));
    e.levels = history(all.runs);
    e.diagnostics.push_back({"branches", static_cast<double>(branches_)});
    e.triggers = triggers.best(config_.max_triggers);
  }

  const Transformer& model_;
  const InputLaw& law_;
  const ContinuationEvent& event_;
  const PayoffConfig& config_;
  ThreadPool& pool_;
  const Watch& watch_;
  double unit_;
  Work work_;
  std::optional<ContinuationEvent> learnt_;
  std::size_t branches_ = 1;
  double flops_per_text_ = 1.0, largest_share_ = 0.0, effective_ = 0.0;
};

}  // namespace

void PayoffConfig::validate() const {
  check_text_budget(budget, "payoff");
  if (replicas < 2 || replicas > kMostReplicas)
    throw InputError(
        "{} replicas: expected at least 2, since the interval comes from their spread, and at most {}",
        replicas, kMostReplicas);
  if (branches > kMostAskedBranches)
    throw InputError("{} branches: expected at most {}", branches, kMostAskedBranches);
}

LearnConfig learning_within(double budget, std::uint64_t seed) {
  return {.texts = static_cast<std::size_t>(std::clamp(0.015 * budget, 32.0, 256.0)), .seed = seed};
}

double text_budget(const ModelConfig& config, const InputLaw& law, const Event& event) {
  constexpr double kFlops = 4e11;
  return std::clamp(kFlops / event.score_flops(config, law), 1000.0, 65536.0);
}

double static_budget(const ModelConfig& config, const InputLaw& law, const Event& event) {
  return 8.0 * text_budget(config, law, event);
}

Estimate payoff(const Transformer& model, const InputLaw& law, const ContinuationEvent& event,
                const PayoffConfig& wanted, ThreadPool& pool, const Watch& watch) {
  wanted.validate();
  if (event.sampling().greedy)
    throw InputError(
        "payoff needs a continuation that is sampled: after an input a greedy one is always the same");
  PayoffConfig config = wanted;
  if (config.budget == 0.0) config.budget = text_budget(model.config(), law, event);
  const Stopwatch stopwatch;
  Estimate e = Payoff(model, law, event, config, pool, watch).run();
  e.cost.seconds = stopwatch.seconds();
  return e;
}

}  // namespace deeptail
