// trajectory: chances are learnt, a pilot says what a text costs, then replicas with levels of their own.
#include "deeptail/trajectory.h"

#include <algorithm>
#include <cmath>

#include "core/memory.h"
#include "core/stopwatch.h"
#include "deeptail/payoff.h"
#include "estimators/method_list.h"
#include "estimators/text_paths.h"
#include "estimators/tokensplit/meter.h"
#include "estimators/tokensplit/summary.h"

namespace deeptail {

namespace {

constexpr std::uint64_t kPathsLearnPart = 1 << 16, kPathsPilotPart = kPathsLearnPart + 1;
constexpr std::size_t kPilotPaths = 64, kFewestPaths = 20, kMostPaths = 4096;
constexpr double kKilledShare = 0.1;

PathsConfig sizes_of_paths(std::size_t n) {
  return {
      .n_paths = n,
      .killed = std::max<std::size_t>(1, static_cast<std::size_t>(kKilledShare * static_cast<double>(n)))};
}

class Trajectory {
 public:
  Trajectory(const Transformer& model, const InputLaw& law, const ContinuationEvent& event,
             const TrajectoryConfig& config, ThreadPool& pool, const Watch& watch)
      : model_(model),
        law_(law),
        config_(config),
        pool_(pool),
        unit_(event.score_flops(model.config(), law)),
        meter_(unit_, config.budget, watch),
        learnt_(learnt(event)) {}

  Estimate run() {
    Estimate e{.method = "trajectory", .guarantee = Guarantee::kUnbiased, .seed = config_.seed};
    const std::size_t n = config_.paths > 0 ? config_.paths : affordable();
    check_memory("the texts of a replica", bytes_of(n), "ask for fewer paths");
    std::vector<SplittingRun> runs;
    for (std::size_t r = 0; r < config_.replicas && meter_.goes_on(); ++r) {
      TextPaths paths = population(n);
      const SplittingRun run = run_trajectories(paths, sizes_of_paths(n), derived_seed(config_.seed, r));
      work_ += paths.work();
      meter_.add(paths.work().flops);
      if (run.end == SplittingEnd::kStopped) break;
      runs.push_back(run);
      for (Trigger& t : paths.triggers(config_.max_triggers - e.triggers.size()))
        e.triggers.push_back(std::move(t));
    }
    fill(e, runs);
    e.diagnostics.push_back({"paths", static_cast<double>(n)});
    fill_cost(e, work_, unit_);
    return e;
  }

 private:
  ContinuationEvent learnt(const ContinuationEvent& event) {
    const LearnConfig learning = learning_within(config_.budget, derived_seed(config_.seed, kPathsLearnPart));
    ContinuationEvent out = event.learnt(model_, law_, learning, pool_, &work_);
    meter_.add(work_.flops);
    return out;
  }
  TextPaths population(std::size_t n) {
    return {model_, law_, learnt_, n, pool_, [this](const Work& work) { return meter_.tell(work.flops); }};
  }
  double bytes_of(std::size_t n) const {
    return static_cast<double>(n) * TextPaths::bytes(model_.config(), law_, learnt_.sampling());
  }

  // A small replica of its own says what a path costs on its way to the event.
  std::size_t affordable() {
    TextPaths paths = population(kPilotPaths);
    run_trajectories(paths, sizes_of_paths(kPilotPaths), derived_seed(config_.seed, kPathsPilotPart));
    work_ += paths.work();
    meter_.add(paths.work().flops);
    const double each = paths.work().flops / static_cast<double>(kPilotPaths),
                 left = std::max(0.0, config_.budget * unit_ - work_.flops);
    const double n = left / static_cast<double>(config_.replicas) / each,
                 fit = 0.5 * memory_limit() / bytes_of(1);
    return static_cast<std::size_t>(
        std::clamp(std::min(n, fit), static_cast<double>(kFewestPaths), static_cast<double>(kMostPaths)));
  }

  void fill(Estimate& e, const std::vector<SplittingRun>& runs) const {
    if (runs.size() < config_.replicas) {
      e.guarantee = Guarantee::kConsistent;
      e.warnings.push_back(
          fmt::format("stopped: {} of {} replicas were finished", runs.size(), config_.replicas));
    }
    if (runs.empty()) {
      e.log_p = e.log_low = -std::numeric_limits<double>::infinity();
      e.log_high = 0.0;
      e.status = Status::kBudgetSpent;
      return;
    }
    FirstDraw first;
    for (const SplittingRun& run : runs) {
      first += run.first;
      e.replica_log_p.push_back(run.log_p);
    }
    const ReplicaSummary s = combine_replicas(
        runs, e.confidence, static_cast<double>(runs.size()) / static_cast<double>(config_.replicas));
    e.log_p = s.log_p;
    e.log_low = s.log_low;
    e.log_high = std::max(e.log_p, std::min(s.log_high, first.log_upper(1.0 - 0.1 * (1.0 - e.confidence))));
    e.log_certain_low = s.log_certain_low;
    e.diagnostics = {{"relative_sd", s.relative_sd}, {"extinct_replicas", static_cast<double>(s.extinct)}};
    if (s.extinct == 0) return;
    e.warnings.push_back(fmt::format("{} of {} replicas died out and count as 0", s.extinct, runs.size()));
    if (2 * s.extinct <= runs.size()) return;
    e.log_high = std::max(e.log_p, first.log_upper(e.confidence));
    if (s.extinct == runs.size()) e.status = Status::kExtinct;
  }

  const Transformer& model_;
  const InputLaw& law_;
  const TrajectoryConfig& config_;
  ThreadPool& pool_;
  double unit_;
  Work work_;
  Meter meter_;
  ContinuationEvent learnt_;
};

}  // namespace

void TrajectoryConfig::validate() const {
  check_text_budget(budget, "trajectory");
  if (replicas < 2 || replicas > kMostReplicas)
    throw InputError(
        "{} replicas: expected at least 2, since the interval comes from their spread, and at most {}",
        replicas, kMostReplicas);
  if (paths != 0 && (paths < 2 || paths > kMostParticles))
    throw InputError("{} paths: expected 2 to {}", paths, kMostParticles);
}

Estimate trajectory(const Transformer& model, const InputLaw& law, const ContinuationEvent& event,
                    const TrajectoryConfig& wanted, ThreadPool& pool, const Watch& watch) {
  wanted.validate();
  if (event.sampling().greedy)
    throw InputError(
        "trajectory needs a continuation that is sampled: after an input a greedy one is always the same");
  TrajectoryConfig config = wanted;
  if (config.budget == 0.0) config.budget = text_budget(model.config(), law, event);
  const Stopwatch stopwatch;
  Estimate e = Trajectory(model, law, event, config, pool, watch).run();
  e.cost.seconds = stopwatch.seconds();
  return e;
}

namespace {

constexpr SettingRow kPathCount{.key = "paths",
                                .help = "Texts of each replica; default: what the budget allows"};
constexpr const SettingRow* kTrajectorySettings[] = {&kBudget, &kReplicas, &kPathCount};

Method make_trajectory(SettingReader& s) {
  TrajectoryConfig config;
  s.take(kBudget, config.budget);
  s.take(kReplicas, config.replicas);
  s.take(kPathCount, config.paths);
  config.validate();
  return pattern_method(
      config.budget, [config](const Question& q, std::uint64_t seed, ThreadPool& pool, const Watch& watch) {
        TrajectoryConfig c = config;
        c.seed = seed;
        return trajectory(*q.model, *q.law, *q.event->continuation(), c, pool, watch);
      });
}

}  // namespace

constinit const MethodRow kTrajectoryRow{.name = "trajectory",
                                         .help = "splitting of texts while they are sampled",
                                         .settings = kTrajectorySettings,
                                         .colour = 11,
                                         .make = make_trajectory};

}  // namespace deeptail
