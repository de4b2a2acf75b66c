// tokensplit: a scan, laws to run under, for each of them pilot and replicas; one estimate.
#include "estimators/tokensplit/tokensplit.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <utility>

#include "core/memory.h"
#include "core/stopwatch.h"
#include "deeptail/activations.h"
#include "estimators/input_screen.h"
#include "estimators/tokensplit/fit_memory.h"
#include "estimators/tokensplit/look.h"
#include "estimators/tokensplit/replicas.h"
#include "estimators/tokensplit/scan.h"
#include "estimators/tokensplit/strata.h"

namespace deeptail {

namespace {

constexpr std::uint64_t kPilotPart = 0, kScreenPart = 1, kReplicaParts = 2;
constexpr std::uint64_t kLookPart = 1 << 16, kScanPart = kLookPart + 1, kStratumParts = kLookPart + 2;
constexpr double kScanBudget = 1.2e4;      // with less, two pilots have too little each
constexpr double kScanShare = 0.15;        // of the budget
constexpr std::size_t kFrequentHits = 10;  // of plain draws: no need for anything but the law itself
constexpr std::size_t kDecidingPositions = 4;

std::string default_or(std::size_t n) { return n == 0 ? "default" : fmt::format("{}", n); }

TokensplitConfig with_budget(const TokensplitConfig& wanted, const TokenProblem& problem, Device device) {
  wanted.validate();
  TokensplitConfig config = wanted;
  if (config.budget == 0.0) config.budget = tokensplit_budget(problem.model.config(), problem.law, device);
  return config;
}

void require_memory(const TokensplitConfig& config, double bytes) {
  check_memory(fmt::format("tokensplit ({} particles, first draw {})", default_or(config.particles),
                           default_or(config.first_draw)),
               bytes, "take fewer particles, replicas or threads, or a smaller budget");
}

// A law under which the estimate runs, and its runs.
template <class Place>
struct Stratum {
  Place place;
  double share = 1.0;  // of the mixture
  std::uint64_t seed = 0;
  PilotResult pilot = {};
  Replicas replicas = {};
};

void warn_of_overspending(Estimate& e, const TokensplitConfig& config) {
  constexpr double kMuch = 1.1;
  if (config.particles > 0 || config.first_draw > 0 || e.cost.forward_equivalents <= kMuch * config.budget)
    return;
  e.warnings.push_back(
      fmt::format("it took {:.2g} passes' work, more than the budget of {:.2g}: with less there are too few "
                  "particles for an interval",
                  e.cost.forward_equivalents, config.budget));
}

// One estimate, step by step.
template <class Place>
class Tokensplit {
 public:
  // config: with its budget.
  Tokensplit(const Place& place, const TokensplitConfig& config, std::size_t targets_at_once,
             ThreadPool& pool, const Watch& watch)
      : place_(place),
        config_(config),
        targets_at_once_(targets_at_once),
        pool_(pool),
        unit_(place.problem.score_flops()),
        meter_(unit_, config.budget, watch) {}

  Estimate run() {
    const TokenProblem& problem = place_.problem;
    if (problem.event.n_parts() == 0) check_varies(problem.law);
    Estimate e{.method = "tokensplit", .guarantee = Guarantee::kUnbiased, .seed = config_.seed};
    if (const Target* target = problem.event.next_token()) e.target = target->ids();
    choose_strata();
    if (const PilotResult* stopped = run_pilots()) {
      fill_stopped(e, *stopped);
    } else {
      run_all_replicas();
      fill(e);
    }
    if (!memory_note_.empty()) e.warnings.push_back(memory_note_);
    fill_cost(e, work_, unit_);
    warn_of_overspending(e, config_);
    e.cost.seconds = work_.device_seconds;
    return e;
  }

 private:
  double left() const { return std::max(0.0, config_.budget - work_.flops / unit_); }  // of the budget
  void pay(const Work& work) {
    work_ += work;
    meter_.add(work.flops);
  }

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
                         pool_, &meter_);
    pay(scan.work);
    mixture_ = tilted(*prior, std::move(scan.plants));
    for (std::size_t c = 0; c < mixture_->size(); ++c)
      strata_.push_back({.place = place_.under(*mixture_, c),
                         .share = mixture_->component(c).share,
                         .seed = derived_seed(config_.seed, kStratumParts + c)});
  }

  bool is_frequent() {
    const Look look = look_at(place_, look_size(config_), derived_seed(config_.seed, kLookPart), pool_);
    pay(look.work);
    return look.first.hits >= kFrequentHits;
  }

  TokensplitConfig config_with(double budget, std::uint64_t seed) const {
    TokensplitConfig config = config_;
    config.budget = budget;
    config.seed = seed;
    return config;
  }

  // Where one was stopped returns the first, which leaves no input out; else null.
  const PilotResult* run_pilots() {
    const double budget = strata_.size() == 1 ? config_.budget : left() / static_cast<double>(strata_.size());
    std::vector<PilotConfig> configs;
    for (const Stratum<Place>& s : strata_) {
      configs.push_back(pilot_config(config_with(budget, s.seed), unit_));
      configs.back().n_particles = fitting(s.place, {.at_level = {configs.back().n_particles}}).most();
    }
    std::atomic<bool> stopped = false;
    // Those that wait for scores wait together.
    ThreadPool callers(place_.waits() ? strata_.size() : 1);
    callers.for_each_block(strata_.size(), [&](std::size_t c, std::size_t) {
      if (stopped) return;
      Stratum<Place>& s = strata_[c];
      std::optional<ThreadPool> own;
      if (callers.size() > 1) own.emplace(std::max<std::size_t>(1, pool_.size() / callers.size()));
      s.pilot = run_pilot(s.place, configs[c], derived_seed(s.seed, kPilotPart), own ? *own : pool_, meter_);
      meter_.add(s.pilot.work.flops);
      if (s.pilot.run.end == SplittingEnd::kStopped) stopped = true;
    });
    for (Stratum<Place>& s : strata_) {
      work_ += s.pilot.work;
      if (mixture_) s.pilot.run.first.log_most = mixture_->log_largest_ratio(0);
    }
    return stopped ? &strata_.front().pilot : nullptr;
  }

  // Budgets of the replicas in proportion to the pilots' standard deviations, none less than a quarter.
  std::vector<double> budgets() const {
    if (strata_.size() == 1) return {config_.budget};
    std::vector<double> spread;
    double sum = 0.0;
    for (const Stratum<Place>& s : strata_) {
      const double variance = std::max(s.pilot.run.genealogy_variance, s.pilot.run.level_variance);
      spread.push_back(s.share * std::exp(s.pilot.run.log_p) * std::sqrt(variance));
      sum += spread.back();
    }
    const auto n = static_cast<double>(strata_.size());
    std::vector<double> out;
    for (std::size_t c = 0; c < strata_.size(); ++c) {
      const double share = sum > 0.0 ? 0.5 / n + 0.5 * spread[c] / sum : 1.0 / n;
      out.push_back(share * left() + strata_[c].pilot.work.flops / unit_);
    }
    return out;
  }

  void run_all_replicas() {
    const std::vector<double> budget = budgets();
    std::vector<TokensplitConfig> configs;
    for (std::size_t c = 0; c < strata_.size(); ++c)
      configs.push_back(config_with(budget[c], strata_[c].seed));
    std::vector<ReplicaTask<Place>> laws;
    double most_bytes = 0.0;
    for (std::size_t c = 0; c < strata_.size(); ++c) {
      Stratum<Place>& s = strata_[c];
      const Sizes sizes = fitting(s.place, sizes_of(configs[c], s.pilot, unit_, strata_.size()));
      most_bytes = std::max(most_bytes, bytes(s.place, sizes));
      laws.push_back({{s.place, configs[c], unit_, pool_, meter_, 1}, s.pilot.plan, sizes});
    }
    require_memory(config_, most_bytes);
    for (ReplicaTask<Place>& law : laws)
      law.run.at_once =
          fitting_at_once(place_.replicas_at_once(config_, laws.size(), pool_.size()), most_bytes);
    std::vector<Replicas> replicas = run_replicas<Place>(laws, kReplicaParts);
    for (std::size_t c = 0; c < strata_.size(); ++c) {
      strata_[c].replicas = std::move(replicas[c]);
      work_ += strata_[c].replicas.work;
    }
  }

  // Of one replica of every target.
  double bytes(const Place& place, const Sizes& sizes) const {
    return static_cast<double>(targets_at_once_) * place.bytes(sizes);
  }
  // Populations that the user did not ask for shrink to what one replica at a time has room for: a result does
  // not depend on the number of threads.
  Sizes fitting(const Place& place, const Sizes& wanted) {
    if (config_.particles > 0) return wanted;
    const Sizes sizes = fitted(wanted, populations_limit(), [&](const Sizes& s) { return bytes(place, s); });
    if (sizes.most() < wanted.most())
      memory_note_ = fmt::format(
          "there is memory for {} particles at a time, and the budget would pay for {}: a part of it was not "
          "spent",
          sizes.most(), wanted.most());
    return sizes;
  }

  // Everything after pilots that were not stopped.
  void fill(Estimate& e) {
    std::vector<StratumRuns> runs;
    for (Stratum<Place>& s : strata_) runs.push_back({s.share, s.pilot, s.replicas});
    const Distribution* prior = place_.problem.law.tables();
    Replicas all = fill_from_strata(e, runs, place_.problem.event.n_parts() == 0 ? prior : nullptr);
    TriggerPool triggers;
    for (const TriggerPool& of : all.triggers) triggers.append(of);
    e.triggers = triggers.best(config_.max_triggers);
    if (prior != nullptr) e.positions = triggers.deciding(*prior, kDecidingPositions);
  }

  const Place& place_;
  const TokensplitConfig& config_;
  std::size_t targets_at_once_;
  ThreadPool& pool_;
  double unit_;
  Meter meter_;
  Work work_;
  std::string memory_note_;
  std::unique_ptr<const Mixture> mixture_;
  std::vector<Stratum<Place>> strata_;
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
  return Tokensplit(place, config, targets_at_once, pool, watch).run();
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
  Estimate e = Tokensplit(place, config, 1, pool, watch).run();
  e.cost.seconds = stopwatch.seconds();
  return e;
}

Estimate tokensplit(const Transformer& model, const Distribution& dist, const Target& target,
                    const TokensplitConfig& config, ThreadPool& pool, const Watch& watch) {
  return tokensplit(model, TokenTables(dist), NextToken(target), config, pool, watch);
}

}  // namespace deeptail
