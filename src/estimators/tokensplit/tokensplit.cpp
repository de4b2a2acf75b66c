// tokensplit: pilot, plan, replicas, one estimate.
#include "estimators/tokensplit/tokensplit.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/memory.h"
#include "core/stopwatch.h"
#include "deeptail/activations.h"
#include "estimators/input_screen.h"
#include "estimators/tokensplit/replicas.h"

namespace deeptail {

namespace {

constexpr std::uint64_t kPilotPart = 0, kScreenPart = 1, kReplicaParts = 2, kSecondWaveParts = 1 << 16;
constexpr std::size_t kDecidingPositions = 4;

std::string default_or(std::size_t n) { return n == 0 ? "default" : fmt::format("{}", n); }

TokensplitConfig with_budget(const TokensplitConfig& wanted, const TokenProblem& problem, Device device) {
  wanted.validate();
  TokensplitConfig config = wanted;
  if (config.budget == 0.0) config.budget = tokensplit_budget(problem.model.config(), problem.law, device);
  return config;
}

// What the populations of replicas that run side by side take of this machine's memory.
template <class Place>
double bytes_side_by_side(const Place& place, const TokensplitConfig& config, std::size_t threads,
                          const Sizes& sizes) {
  return static_cast<double>(place.replicas_at_once(config, threads)) * place.bytes(sizes);
}

void require_memory(const TokensplitConfig& config, double bytes) {
  check_memory(fmt::format("tokensplit ({} particles, first draw {})", default_or(config.particles),
                           default_or(config.first_draw)),
               bytes, "take fewer particles, replicas or threads, or a smaller budget");
}

// One or two runs of all replicas.
struct Waves {
  Replicas answer;
  Work work = {};                // of both
  bool second_possible = false;  // whether or not it was needed
  bool second_run = false;
  std::vector<std::string> warnings = {};
};

bool disagreed(const Replicas& all) {
  return std::none_of(all.runs.begin(), all.runs.end(), was_stopped) && combine_replicas(all.runs).disagree;
}

// Is there room for a second run with twice the particles, should the replicas disagree? Decided before the
// first one: only then do the lower bounds know of it (share_of_waves).
template <class Place>
bool may_repeat(const TokensplitRun<Place>& run, const PilotResult& pilot, const Sizes& sizes,
                const Sizes& doubled, double doubled_bytes) {
  const double planned = (sizes.flops + doubled.flops) * static_cast<double>(run.config.replicas);
  // Plain sampling has no modes to lose.
  return pilot.plan.levels.size() > 1 && pilot.work.flops + planned <= run.config.budget * run.unit &&
         doubled.valid() && doubled_bytes <= memory_limit();
}

template <class Place>
Waves run_waves(const TokensplitRun<Place>& run, PilotResult& pilot, std::size_t targets_at_once) {
  const Sizes sizes = sizes_of(run.config, pilot, run.unit), doubled = sizes.doubled();
  const auto bytes = [&](const Sizes& of) {
    return static_cast<double>(targets_at_once) *
           bytes_side_by_side(run.place, run.config, run.pool.size(), of);
  };
  require_memory(run.config, bytes(sizes));
  const bool second_possible = may_repeat(run, pilot, sizes, doubled, bytes(doubled));
  Waves waves{.answer = run_replicas(run, pilot.plan, sizes, kReplicaParts),
              .second_possible = second_possible};
  waves.work = waves.answer.work;
  if (!second_possible || !disagreed(waves.answer)) return waves;
  waves.second_run = true;
  waves.warnings.emplace_back(
      "the replicas disagreed: a mode may be missing, so they were run again with twice the particles");
  Replicas again = run_replicas(run, pilot.plan, doubled, kSecondWaveParts);
  waves.work += again.work;
  if (std::none_of(again.runs.begin(), again.runs.end(), was_stopped))
    waves.answer = std::move(again);
  else
    waves.warnings.emplace_back("stopped during the second run: the estimate is the first one's");
  return waves;
}

// Everything after a pilot that was not stopped.
void fill_from_waves(Estimate& e, Waves& waves, const PilotResult& pilot) {
  e.warnings = pilot.plan.warnings;
  const bool reached = pilot.run.end == SplittingEnd::kReached;
  if (!reached)
    e.warnings.push_back(
        fmt::format("the pilot ended ({}) below the event: from there on the replicas found it, or not, by "
                    "sampling alone",
                    name_of(pilot.run.end)));
  // Looking at the first replicas before drawing more costs the strict guarantee.
  if (waves.second_run) e.guarantee = Guarantee::kConsistent;
  e.warnings.insert(e.warnings.end(), waves.warnings.begin(), waves.warnings.end());
  FirstDraw first = pilot.run.first;
  first += waves.answer.first;
  fill_from_replicas(e, waves.answer, share_of_waves(waves.second_possible), first,
                     !pilot.plan.warnings.empty());
  if (waves.answer.runs.empty() && reached)
    e.warnings.push_back(
        fmt::format("the pilot reached the event, with p about {:.2g}; nothing is known of its error",
                    std::exp(pilot.run.log_p)));
  if (!reached && e.status == Status::kExtinct) e.status = Status::kNotReachedUpperBound;
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

// config: with its budget.
template <class Place>
Estimate estimate_at(const Place& place, const TokensplitConfig& config, std::size_t targets_at_once,
                     ThreadPool& pool, const Watch& watch) {
  const TokenProblem& problem = place.problem;
  check_varies(problem.law);
  const double unit = forward_flops(problem.model.config(), problem.length());
  Meter meter(unit, config.budget, watch);
  const TokensplitRun<Place> run{place, config, unit, pool, meter};
  Estimate e{.method = "tokensplit", .guarantee = Guarantee::kUnbiased, .seed = config.seed};
  if (const Target* target = problem.event.next_token()) e.target = target->ids();
  PilotResult pilot =
      run_pilot(place, pilot_config(config, unit), derived_seed(config.seed, kPilotPart), pool, meter);
  meter.add(pilot.work.flops);
  Work work = pilot.work;
  if (pilot.run.end == SplittingEnd::kStopped) {
    fill_stopped(e, pilot);
  } else {
    Waves waves = run_waves(run, pilot, targets_at_once);
    work += waves.work;
    fill_from_waves(e, waves, pilot);
    e.triggers = waves.answer.triggers.best(config.max_triggers);
    if (const Distribution* tables = problem.law.tables())
      e.positions = waves.answer.triggers.deciding(*tables, kDecidingPositions);
  }
  fill_cost(e, work, unit);
  warn_of_overspending(e, config);
  e.cost.seconds = work.device_seconds;
  return e;
}

}  // namespace

double target_bytes(const TokenProblem& problem, const TokensplitConfig& wanted) {
  const TokensplitConfig config = with_budget(wanted, problem, ServedPlace::kDevice);
  return static_cast<double>(ServedPlace::replicas_at_once(config, 1)) *
         asked_sizes(config).token_bytes(problem.length());
}

Estimate estimate_target(const ServedPlace& place, const TokensplitConfig& wanted,
                         std::size_t targets_at_once, ThreadPool& pool, const Watch& watch) {
  const TokensplitConfig config = with_budget(wanted, place.problem, ServedPlace::kDevice);
  require_memory(config, static_cast<double>(targets_at_once) *
                             bytes_side_by_side(place, config, pool.size(), asked_sizes(config)));
  return estimate_at(place, config, targets_at_once, pool, watch);
}

Estimate tokensplit(const Transformer& model, const InputLaw& law, const Event& event,
                    const TokensplitConfig& wanted, ThreadPool& pool, const Watch& watch) {
  CpuPlace place{{.model = model, .law = law, .event = event}};
  const TokensplitConfig config = with_budget(wanted, place.problem, CpuPlace::kDevice);
  require_memory(config, bytes_side_by_side(place, config, pool.size(), asked_sizes(config)));
  const Stopwatch stopwatch;
  const auto table = law.tables() != nullptr ? first_layer_table(model, *law.tables(), pool) : nullptr;
  std::optional<Screen> screen;
  if (event.next_token() != nullptr)
    screen.emplace(screen_for(model, law, derived_seed(config.seed, kScreenPart), pool, table.get()));
  place.problem.table = table.get();
  place.problem.screen = screen ? &*screen : nullptr;
  Estimate e = estimate_at(place, config, 1, pool, watch);
  e.cost.seconds = stopwatch.seconds();
  return e;
}

Estimate tokensplit(const Transformer& model, const Distribution& dist, const Target& target,
                    const TokensplitConfig& config, ThreadPool& pool, const Watch& watch) {
  return tokensplit(model, TokenTables(dist), NextToken(target), config, pool, watch);
}

}  // namespace deeptail
