// mhis: chains, the normaliser, one estimate.
#include "deeptail/mhis.h"

#include <algorithm>
#include <cmath>

#include "core/json.h"
#include "core/stopwatch.h"
#include "estimators/input_screen.h"
#include "estimators/log_weights.h"
#include "estimators/mhis/bridge.h"
#include "estimators/mhis/chains.h"

namespace deeptail {

namespace {

// Parts of a run; the chains' starts are part 1.
constexpr std::uint64_t kMhisScreenPart = 0, kBridgePart = 2, kBoundPart = 3;
constexpr std::uint64_t kStepsPerRound = 64;  // between questions to the watch
constexpr std::size_t kLargestGroup = 16;     // chains of one worker that move together
constexpr double kFewEffective = 10.0;

struct ChainsRun {
  ChainRecord record;
  std::uint64_t steps_done = 0;  // burn-in included
  std::uint64_t accepted = 0;
  std::vector<Trigger> triggers = {};
};

ChainsRun run_chains(const ChainProblem& problem, const MhisConfig& config, ThreadPool& pool,
                     const Watch& watch) {
  const std::uint64_t steps = config.samples / config.chains, total = config.burn_in + steps;
  const std::size_t share = (config.chains + pool.size() - 1) / pool.size();
  const std::size_t size = std::min(share, kLargestGroup);  // results do not depend on it
  std::vector<std::unique_ptr<ChainGroup>> groups((config.chains + size - 1) / size);
  pool.for_each_block(groups.size(), [&](std::size_t g, std::size_t) {
    groups[g] =
        std::make_unique<ChainGroup>(problem, config, g * size, std::min(size, config.chains - g * size));
  });
  ChainsRun run{.record = ChainRecord(config.chains, steps)};
  while (run.steps_done < total) {
    const std::uint64_t end = std::min(total, run.steps_done + kStepsPerRound);
    pool.for_each_block(groups.size(),
                        [&](std::size_t g, std::size_t) { groups[g]->run(run.steps_done, end, run.record); });
    run.steps_done = end;
    if (!goes_on(watch, progress_of(end * config.chains, config.work()))) break;
  }
  for (const auto& group : groups) {
    run.accepted += group->accepted();
    run.triggers.insert(run.triggers.end(), group->triggers().begin(), group->triggers().end());
  }
  std::sort(run.triggers.begin(), run.triggers.end(),
            [](const Trigger& a, const Trigger& b) { return a.sample < b.sample; });
  if (run.triggers.size() > config.max_triggers) run.triggers.resize(config.max_triggers);
  return run;
}

// Sums of exp(-logit / temperature) over what the chains recorded.
struct ChainTotals {
  std::uint64_t n = 0;
  WeightSums all, hits;
  std::vector<BatchSum> chains;
};

ChainTotals add_up(const ChainsRun& run, const MhisConfig& config) {
  ChainTotals totals;
  const std::uint64_t recorded = run.steps_done - std::min(run.steps_done, config.burn_in);
  for (std::size_t c = 0; c < config.chains; ++c) {
    WeightSums all, hits;
    for (std::uint64_t s = 0; s < recorded; ++s) {
      const std::size_t at = c * run.record.steps + static_cast<std::size_t>(s);
      const double log_weight = -static_cast<double>(run.record.values[at]) / config.temperature;
      all.add(log_weight);
      if (run.record.events[at]) hits.add(log_weight);
    }
    totals.n += all.count;
    totals.all.add(all);
    totals.hits.add(hits);
    totals.chains.push_back({hits.log_sum, all.log_sum});
  }
  return totals;
}

// target logit / temperature at plain inputs.
std::vector<double> plain_levels(const ChainProblem& problem, const MhisConfig& config, ThreadPool& pool) {
  const std::size_t n = config.bridge_inputs, d = problem.model.config().d_model,
                    length = problem.dist.length();
  std::vector<TokenId> tokens(n * length);
  sample_range(problem.dist, derived_seed(config.seed, kBridgePart), 0, pool, tokens);
  AlignedVector<float> resid(n * d), normed(n * d);
  final_residuals(problem.model, {tokens, length}, pool, {resid.data(), d}, problem.table);
  problem.model.head().normalise(n, {resid.data(), d}, {normed.data(), d});
  const auto& ids = problem.target.ids();
  const PackedMatrix columns = problem.model.head().w_u.columns(ids);
  AlignedVector<float> logits_found(n * ids.size());
  gemm(n, {normed.data(), d}, columns, {logits_found.data(), ids.size()});
  std::vector<double> levels(n);
  for (std::size_t i = 0; i < n; ++i)
    levels[i] = static_cast<double>(best_of(ids.size(), logits_found.data() + i * ids.size()).value) /
                config.temperature;
  return levels;
}

struct BridgedZ {
  double log_z, relative_sd;
  bool settled;
};

// log Z from all draws; its spread by leaving out one chain and its share of the plain inputs at a time.
BridgedZ bridged(const std::vector<double>& plain, const ChainsRun& run, const MhisConfig& config,
                 double start) {
  const std::size_t recorded = static_cast<std::size_t>(run.steps_done - config.burn_in);
  std::vector<double> tilted;
  const auto without = [&](std::size_t left_out) {
    tilted.clear();
    for (std::size_t c = 0; c < config.chains; ++c)
      for (std::size_t s = 0; s < recorded && c != left_out; ++s)
        tilted.push_back(static_cast<double>(run.record.values[c * run.record.steps + s]) /
                         config.temperature);
    std::vector<double> kept;
    for (std::size_t i = 0; i < plain.size(); ++i)
      if (i % config.chains != left_out) kept.push_back(plain[i]);
    return bridge(kept, tilted, start);
  };
  const BridgeResult whole = without(config.chains);
  start = whole.log_z;
  std::vector<double> parts;
  for (std::size_t c = 0; c < config.chains; ++c) parts.push_back(without(c).log_z);
  const auto n = static_cast<double>(config.chains);
  double mean = 0.0, squares = 0.0;
  for (const double part : parts) mean += part / n;
  for (const double part : parts) squares += (part - mean) * (part - mean);
  return {whole.log_z, std::sqrt((n - 1.0) / n * squares), whole.settled};
}

// No chain saw the event, or its hits weigh nothing: the chains' draws bound nothing, plain inputs do.
void fill_bound(Estimate& e, const ChainProblem& problem, const MhisConfig& config, ThreadPool& pool,
                const Watch& watch) {
  e.log_p = e.log_low = kLogZero;
  e.log_high = 0.0;
  e.status = Status::kNotReachedUpperBound;
  if (config.bound_inputs == 0) return;
  std::uint64_t hits = 0;
  InputRunner runner(problem.model, problem.dist, derived_seed(config.seed, kBoundPart), pool);
  const auto count = [&](std::uint64_t, std::span<const TokenId> said) {
    for (const TokenId id : said) hits += problem.target.contains(id);
  };
  const Watch asked = [&](const Progress&) {
    return goes_on(watch, progress_of(config.samples, config.work()));
  };
  const std::uint64_t n = for_each_batch(runner, 0, config.bound_inputs, count, asked);
  e.log_high = std::log(clopper_pearson(hits, n, e.confidence).high);
  e.cost.forward += n;
  if (hits > 0)
    e.warnings.push_back(fmt::format(
        "the chains see nothing of the event, but {} of {} plain inputs do: the estimate 0 is wrong", hits,
        n));
}

void fill_reached(Estimate& e, const ChainTotals& totals, const ChainProblem& problem, const ChainsRun& run,
                  const MhisConfig& config, ThreadPool& pool) {
  BatchSpread spread = spread_of(totals.chains);
  e.log_p = totals.hits.log_sum - totals.all.log_sum;
  if (config.normaliser == Normaliser::kBridge) {
    const double log_n = std::log(static_cast<double>(totals.n));
    const auto plain = plain_levels(problem, config, pool);
    const BridgedZ z = bridged(plain, run, config, log_n - totals.all.log_sum);
    std::vector<BatchSum> fixed = totals.chains;  // Z is no longer the chains' own: only hits vary
    for (BatchSum& b : fixed) b.log_all = 0.0;
    spread = spread_of(fixed);
    spread.relative_sd += z.relative_sd;  // the two are correlated: the sum covers the worst case
    e.log_p = totals.hits.log_sum - log_n + z.log_z;
    e.cost.forward += plain.size();
    e.diagnostics.push_back({"log_normaliser", z.log_z});
    e.diagnostics.push_back({"normaliser_relative_sd", z.relative_sd});
    if (!z.settled)
      e.warnings.emplace_back("the bridge did not settle: plain inputs and chains hardly overlap");
  }
  const double half = log_half_width(spread.relative_sd, spread.effective_batches, e.confidence);
  e.log_low = std::min(0.0, e.log_p - half);
  if (totals.hits.count == totals.n)  // all that is independent of each other are the chains
    e.log_low =
        std::min(e.log_low, std::log(clopper_pearson(config.chains, config.chains, e.confidence).low));
  e.log_p = std::min(0.0, e.log_p);
  e.log_high = std::min(0.0, e.log_p + half);
  e.diagnostics.push_back({"relative_sd", spread.relative_sd});
  e.diagnostics.push_back({"effective_chains", spread.effective_batches});
  if (spread.effective_batches < kFewEffective)
    e.warnings.push_back(fmt::format(
        "the estimate rests on {:.1f} effective chains of {}: they disagree, and the interval is a "
        "rough guide",
        spread.effective_batches, config.chains));
}

}  // namespace

void MhisConfig::validate() const {
  if (chains < 2)
    throw InputError("{} chains: expected at least 2, since the interval comes from their spread", chains);
  if (samples < chains) throw InputError("{} samples: expected at least one per chain ({})", samples, chains);
  if (!(temperature > 0.0 && std::isfinite(temperature)))
    throw InputError("temperature {}: expected a positive number", temperature);
  if (normaliser == Normaliser::kBridge && bridge_inputs < 2 * chains)
    throw InputError("{} inputs for the bridge: expected at least two per chain ({})", bridge_inputs,
                     2 * chains);
}

Estimate mhis(const Transformer& model, const Distribution& dist, const Target& target,
              const MhisConfig& config, ThreadPool& pool, const Watch& watch) {
  config.validate();
  const Stopwatch stopwatch;
  Estimate e{
      .method = "mhis", .target = target.ids(), .guarantee = Guarantee::kConsistent, .seed = config.seed};
  const TokenGradients gradients_of(model, dist);
  const auto table = first_layer_table(model, dist, pool);
  const Screen screen =
      screen_for(model, dist, derived_seed(config.seed, kMhisScreenPart), pool, table.get());
  const GradientEngine engine(model);
  const MarginTest test(model.head(), target, {}, &screen);
  const ChainProblem problem{model, dist, target, gradients_of, engine, test, table.get()};

  ChainsRun run = run_chains(problem, config, pool, watch);
  const ChainTotals totals = add_up(run, config);
  const std::uint64_t proposals = run.steps_done * config.chains;
  e.cost.forward = e.cost.backward = proposals + config.chains;
  e.diagnostics = {{"hits", static_cast<double>(totals.hits.count)},
                   {"effective_hits", totals.hits.effective()},
                   {"largest_weight_share", totals.hits.largest_share()},
                   {"effective_sample_size", totals.all.effective()},
                   {"acceptance", static_cast<double>(run.accepted) /
                                      static_cast<double>(std::max<std::uint64_t>(proposals, 1))}};
  if (totals.hits.count > 0) fill_reached(e, totals, problem, run, config, pool);
  if (totals.hits.count > 0 && std::exp(e.log_p) == 0.0)
    e.warnings.emplace_back("the hits' weights vanish beside the others': the temperature is too low");
  if (totals.hits.count == 0 || std::exp(e.log_p) == 0.0) fill_bound(e, problem, config, pool, watch);
  if (totals.n < config.samples / config.chains * config.chains)
    e.warnings.push_back(fmt::format("ended after {} of {} samples", totals.n, config.samples));
  e.triggers = std::move(run.triggers);
  // The way back takes the trunk's products once more; it needs no weight gradients.
  e.cost.forward_equivalents = static_cast<double>(e.cost.forward + e.cost.backward);
  e.cost.flops = e.cost.forward_equivalents * forward_flops(model.config(), dist.length());
  e.cost.seconds = stopwatch.seconds();
  return e;
}

}  // namespace deeptail
