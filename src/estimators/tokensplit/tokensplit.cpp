// tokensplit: a scan, laws to run under, for each of them pilot and replicas; one estimate.
#include "estimators/tokensplit/tokensplit.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/stopwatch.h"
#include "deeptail/activations.h"
#include "estimators/input_screen.h"
#include "estimators/tokensplit/budgeted_runs.h"
#include "estimators/tokensplit/learnt_laws.h"
#include "estimators/tokensplit/look.h"
#include "estimators/tokensplit/scan.h"
#include "estimators/tokensplit/strata.h"

namespace deeptail {

namespace {

constexpr std::uint64_t kScreenPart = 1;
constexpr std::uint64_t kLookPart = 1 << 16, kScanPart = kLookPart + 1, kStratumParts = kLookPart + 2;
constexpr std::uint64_t kThirdLawPart = kLookPart + 512;
// Of the budget, in re-scored proposals and in passes: with less of either, a third law has too little.
constexpr double kLearnMoves = 4e5, kLearnPasses = 4e4;
constexpr double kLessonShare = 0.03;    // of the budget
constexpr double kNearHitsShare = 0.04;  // of the budget: tokens tried in hits
constexpr double kTryShare = 0.1;        // of the budget, at most: what is learnt, planted
// Of what pilots leave, for what is learnt. Where a scan has tried all pairs, few ways to the event are left to find, and
// the law that plants what was found has most of it to count.
constexpr double kLearntShare = 0.12, kLearntShareAllPairs = 0.4;
constexpr double kScanBudget = 1.2e4;      // with less, two pilots have too little each
constexpr double kScanShare = 0.15;        // of the budget
constexpr std::size_t kFrequentHits = 10;  // of plain draws: no need for anything but the law itself
constexpr std::size_t kDecidingPositions = 4;

TokensplitConfig with_budget(const TokensplitConfig& wanted, const TokenProblem& problem, Device device) {
  wanted.validate();
  TokensplitConfig config = wanted;
  if (config.budget == 0.0) config.budget = tokensplit_budget(problem.model.config(), problem.law, device);
  return config;
}

void warn_of_overspending(Estimate& e, const TokensplitConfig& config) {
  constexpr double kMuch = 1.1;
  if (config.particles > 0 || config.first_draw > 0 || e.cost.forward_equivalents <= kMuch * config.budget)
    return;
  e.warnings.push_back(
      fmt::format("it took {:.2g} passes' work, more than the budget of {:.2g}: with less there are too few "
                  "particles for an interval",
                  e.cost.forward_equivalents, config.budget));
}

// Where replicas learn from each other, pilots only find levels and moves: they may be shorter.
void make_brief(PilotConfig& pilot) {
  constexpr double kForgotten = 0.2, kShare = 0.5;
  pilot.forgotten = std::max(pilot.forgotten, kForgotten);
  pilot.flops *= kShare;
}

// One estimate, step by step.
template <class Place>
class Tokensplit : BudgetedRuns<Place> {
  using Runs = BudgetedRuns<Place>;
  using Runs::config_, Runs::left, Runs::place_, Runs::pool_, Runs::unit_, Runs::work_;

 public:
  using Runs::Runs;

  Estimate run() {
    const TokenProblem& problem = place_.problem;
    if (problem.event.n_parts() == 0) check_varies(problem.law);
    Estimate e{.method = "tokensplit", .guarantee = Guarantee::kUnbiased, .seed = config_.seed};
    if (const Target* target = problem.event.next_token()) e.target = target->ids();
    choose_strata();
    if (!find_levels()) {
      fill_stopped(e, strata_.front().pilot);  // the first one leaves no input out
    } else {
      run_replicas();
      const bool whole = !learns() || learn();
      fill(e);
      if (!whole)
        e.warnings.push_back("stopped: what the replicas learnt from each other is not in the answer");
    }
    if (!this->memory_note_.empty()) e.warnings.push_back(this->memory_note_);
    fill_cost(e, work_, unit_);
    warn_of_overspending(e, config_);
    e.cost.seconds = work_.device_seconds;
    return e;
  }

 private:
  // Frequent events, and laws that are no tables, are run under the law itself.
  void choose_strata() {
    const Distribution* prior = place_.problem.law.tables();
    const bool answers = place_.problem.event.answer_length() > 0;  // the scan knows nothing of them
    if (config_.tilt == Tilting::kNone || prior == nullptr || answers || is_frequent()) {
      strata_.push_back({.place = place_, .seed = config_.seed});
      return;
    }
    ScanResult scan;
    if (config_.budget >= kScanBudget)
      scan = scan_tokens(place_, kScanShare * config_.budget * unit_, derived_seed(config_.seed, kScanPart),
                         pool_, &this->meter_);
    this->pay(scan.work);
    scanned_ = scan.plants;
    learnt_share_ = scan.all_pairs ? kLearntShareAllPairs : kLearntShare;
    mixture_ = tilted(*prior, std::move(scan.plants));
    for (std::size_t c = 0; c < mixture_->size(); ++c)
      strata_.push_back({.place = place_.under(*mixture_, c),
                         .share = mixture_->component(c).share,
                         .seed = derived_seed(config_.seed, kStratumParts + c)});
  }
  bool is_frequent() {
    const Look look = look_at(place_, look_size(config_), derived_seed(config_.seed, kLookPart), pool_);
    this->pay(look.work);
    return look.first.hits >= kFrequentHits;
  }

  // Returns false when one was stopped.
  bool find_levels() {
    const double budget = strata_.size() == 1 ? config_.budget : left() / static_cast<double>(strata_.size());
    std::vector<PilotConfig> configs;
    for (const Stratum<Place>& s : strata_) {
      configs.push_back(this->pilot_of(s, budget));
      if (learns()) make_brief(configs.back());
    }
    const bool whole = this->run_pilots(strata_, configs);
    for (Stratum<Place>& s : strata_)
      if (mixture_) s.pilot.run.first.log_most = mixture_->log_largest_ratio(0);
    return whole;
  }

  void run_replicas() {
    const double near = kNearHitsShare * config_.budget;
    const double all = learns() ? (1.0 - learnt_share_) * std::max(0.0, left() - near) : left();
    this->run_all_replicas(strata_, strata_.size() == 1 ? std::vector{config_.budget}
                                                        : replica_budgets<Place>(strata_, all, unit_));
  }

  bool learns() const {
    return scanned_ && config_.tilt == Tilting::kAuto && config_.budget >= kLearnPasses &&
           affordable_moves() >= kLearnMoves;
  }
  // What the budget would pay for, of changes anywhere.
  double affordable_moves() const {
    const TokenProblem& problem = place_.problem;
    const std::vector<std::size_t> free = problem.free_parts();
    double flops = 0.0;
    for (const std::size_t part : free)
      flops += problem.event.change_flops(problem.model.config(), problem.law, part) /
               static_cast<double>(free.size());
    return config_.budget * unit_ / flops;
  }
  // Adds the third law. Returns false when that was stopped: the replicas are left as they were.
  bool learn() {
    for (const Stratum<Place>& s : strata_)
      if (!finished(s.replicas)) return true;  // which is told elsewhere
    const std::uint64_t seed = derived_seed(config_.seed, kThirdLawPart);
    const double flops = config_.budget * unit_;
    LearntLaws laws = learnt_laws<Place>(
        place_, strata_, *scanned_,
        {.lessons = kLessonShare * flops, .near_hits = kNearHitsShare * flops, .tries = kTryShare * flops},
        seed, pool_);
    this->pay(laws.work);
    const Mixture* any = laws.any();
    if (any == nullptr) return true;
    Stratum<Place> learnt{.place = place_.under(*any, kLearntLaw),
                          .seed = derived_seed(config_.seed, kStratumParts + kLearntLaw)};
    if (!this->run_pilots({&learnt, 1}, std::vector{learnt_pilot(learnt)})) return false;
    learnt.replicas = learnt_replicas(learnt, laws);
    if (!finished(learnt.replicas)) return false;
    found_ = found_by<Place>(strata_);
    for (std::size_t r = 0; r < config_.replicas; ++r) {
      const Mixture& now = *laws.but_for[r];
      for (std::size_t c = 0; c < strata_.size(); ++c) weigh_again(strata_[c].replicas, r, *mixture_, now, c);
      if (LearntLaws::learnt(now))
        weigh_again(learnt.replicas, r, now, now, kLearntLaw);
      else
        learnt.replicas.forget(r);
    }
    for (Stratum<Place>& s : strata_) s.share = 1.0;
    strata_.push_back(std::move(learnt));
    return true;
  }
  // What is planted need not be found: particles count for more than moves.
  PilotConfig learnt_pilot(const Stratum<Place>& learnt) {
    PilotConfig pilot = this->pilot_of(learnt, left());
    make_brief(pilot);
    pilot.forgotten = 0.7;
    pilot.fewest_moves = 8;
    return pilot;
  }
  // Replica r under the law of what the others found.
  Replicas learnt_replicas(Stratum<Place>& learnt, const LearntLaws& laws) {
    TokensplitConfig config = this->config_with(left() + learnt.pilot.work.flops / unit_, learnt.seed);
    const Sizes sizes = this->fitting(learnt.place, sizes_of(config, learnt.pilot, unit_, kLearntLaw + 1));
    config.replicas = 1;
    std::vector<Place> places;
    std::vector<TokensplitConfig> configs(config_.replicas, config);
    std::vector<ReplicaTask<Place>> tasks;
    places.reserve(config_.replicas);
    for (std::size_t r = 0; r < config_.replicas; ++r) {
      const Mixture& law = *laws.but_for[r];
      places.push_back(LearntLaws::learnt(law) ? place_.under(law, kLearntLaw) : learnt.place);
      configs[r].seed = derived_seed(learnt.seed, kStratumParts + r);
      tasks.push_back({{places[r], configs[r], unit_, pool_, this->meter_}, learnt.pilot.plan, sizes});
    }
    Replicas all;
    for (Replicas& one : this->run_tasks(tasks)) all.append(std::move(one));
    return all;
  }
  static bool finished(const Replicas& replicas) {
    return std::none_of(replicas.runs.begin(), replicas.runs.end(), was_stopped);
  }

  // Everything after pilots that were not stopped.
  void fill(Estimate& e) {
    std::vector<StratumRuns> runs;
    for (Stratum<Place>& s : strata_) runs.push_back({s.share, s.pilot, s.replicas});
    const Distribution* prior = place_.problem.law.tables();
    Replicas all = fill_from_strata(e, runs, place_.problem.event.n_parts() == 0 ? prior : nullptr, found_);
    TriggerPool triggers;
    for (const TriggerPool& of : all.triggers) triggers.append(of);
    e.triggers = triggers.best(config_.max_triggers);
    if (prior != nullptr) e.positions = triggers.deciding(*prior, kDecidingPositions);
  }

  std::optional<PlantList> scanned_;
  double learnt_share_ = kLearntShare;
  std::unique_ptr<const Mixture> mixture_;
  std::vector<Stratum<Place>> strata_;
  std::vector<TriggerPool> found_;  // by each replica before it learnt from others
};

}  // namespace

double target_bytes(const TokenProblem& problem, const TokensplitConfig& wanted) {
  const TokensplitConfig config = with_budget(wanted, problem, ServedPlace::kDevice);
  return static_cast<double>(ServedPlace::replicas_at_once(config, 1, 1)) *
         asked_sizes(config).token_bytes(problem.length());
}

Estimate estimate_target(const ServedPlace& place, const TokensplitConfig& wanted,
                         std::size_t targets_at_once, ThreadPool& pool, const Watch& watch) {
  const TokensplitConfig config = with_budget(wanted, place.problem, ServedPlace::kDevice);
  require_memory(config, static_cast<double>(targets_at_once) * place.bytes(asked_sizes(config)));
  return Tokensplit<ServedPlace>(place, config, targets_at_once, pool, watch).run();
}

Estimate tokensplit(const Transformer& model, const InputLaw& law, const Event& event,
                    const TokensplitConfig& wanted, ThreadPool& pool, const Watch& watch) {
  CpuPlace place{{.model = model, .law = law, .event = event}};
  const TokensplitConfig config = with_budget(wanted, place.problem, CpuPlace::kDevice);
  require_memory(config, place.bytes(asked_sizes(config)));
  const Stopwatch stopwatch;
  const bool tables = law.tables() != nullptr && event.runs_model() && event.answer_length() == 0;
  const auto table = tables ? first_layer_table(model, *law.tables(), pool) : nullptr;
  std::optional<Screen> screen;
  if (event.next_token() != nullptr)
    screen.emplace(screen_for(model, law, derived_seed(config.seed, kScreenPart), pool, table.get()));
  place.problem.table = table.get();
  place.problem.screen = screen ? &*screen : nullptr;
  Estimate e = Tokensplit<CpuPlace>(place, config, 1, pool, watch).run();
  e.cost.seconds = stopwatch.seconds();
  return e;
}

Estimate tokensplit(const Transformer& model, const Distribution& dist, const Target& target,
                    const TokensplitConfig& config, ThreadPool& pool, const Watch& watch) {
  return tokensplit(model, TokenTables(dist), NextToken(target), config, pool, watch);
}

}  // namespace deeptail
