// split, split_many: tokensplit's engine on scores of a user's own.
#include "deeptail/split.h"

#include <mutex>

#include "core/stopwatch.h"
#include "estimators/tokensplit/called_scores.h"

namespace deeptail {

namespace {

constexpr double kSplitBudget = 1e5;

void tell_counts(Estimate& e, const CalledScores& scores) {
  const CalledScores::Counts counts = scores.counts();
  const auto add = [&](const char* name, double value) { e.diagnostics.emplace_back(name, value); };
  add("scored_rows", static_cast<double>(counts.rows + counts.exact_rows));
  add("batches", static_cast<double>(counts.batches));
  add("padded_rows", static_cast<double>(counts.padded));
  add("seconds_scoring", counts.seconds);
  if (scores.config().exact) add("exact_rows", static_cast<double>(counts.exact_rows));
  if (counts.farther == 0) return;
  e.guarantee = Guarantee::kConsistent;
  e.warnings.push_back(
      fmt::format("the two scores of {} rows differ by more than {}: decisions near a level may be wrong",
                  counts.farther, scores.config().near));
}

TokensplitConfig config_for(const CalledScores& scores, const TokensplitConfig& wanted) {
  TokensplitConfig config = wanted;
  if (config.budget == 0.0) config.budget = kSplitBudget;
  if (scores.config().numbers > 0) config.tilt = Tilting::kNone;  // a scan knows nothing of them
  return config;
}

// config: with its budget.
Estimate split_one(const InputLaw& law, CalledScores& scores, const CalledEvent& event,
                   const TokensplitConfig& config, ThreadPool& pool, const Watch& watch,
                   const Transformer* model) {
  const auto go_on = [&](const Progress& p) { return goes_on(watch, p) && !scores.gave_up(); };
  Estimate e = tokensplit(model == nullptr ? Transformer::none() : *model, law, event, config, pool, go_on);
  scores.rethrow();
  e.method = "split";
  e.event = event.text();
  e.provenance.dist = law.facts().name;
  e.provenance.dist_sha256 = law.facts().sha256;
  tell_counts(e, scores);
  return e;
}

// The scores of all events together, and whether to go on.
class SumOfScores {
 public:
  SumOfScores(std::size_t events, double budget, const Watch& watch)
      : told_(events, 0),
        total_(static_cast<std::uint64_t>(budget * static_cast<double>(events))),
        watch_(watch) {}
  bool tell(std::size_t event, std::uint64_t done) {
    const std::lock_guard lock(mutex_);
    sum_ += done - std::min(done, told_[event]);
    told_[event] = std::max(done, told_[event]);
    go_ = go_ && goes_on(watch_, progress_of(sum_, total_));
    return go_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::uint64_t> told_;
  std::uint64_t sum_ = 0, total_;
  bool go_ = true;
  const Watch& watch_;
};

}  // namespace

Estimate split(const InputLaw& law, CalledScores& scores, const TokensplitConfig& wanted, ThreadPool& pool,
               const Watch& watch, const Transformer* model) {
  const CalledEvent event(scores, model, scores.config().text);
  return split_one(law, scores, event, config_for(scores, wanted), pool, watch, model);
}

void split_many(const InputLaw& law, CalledScores& scores, std::span<const std::string> events,
                const TokensplitConfig& wanted, const SplitManyOptions& options, const Watch& watch,
                const Transformer* model) {
  if (events.empty()) return;
  const TokensplitConfig config = config_for(scores, wanted);
  SumOfScores sum(events.size(), config.budget, watch);
  std::mutex telling;
  ThreadPool callers(std::clamp<std::size_t>(options.at_once, 1, events.size()));
  callers.for_each_block(events.size(), [&](std::size_t i, std::size_t) {
    if (!sum.tell(i, 0) || scores.gave_up()) return;
    ThreadPool alone(1);
    const CalledEvent event(scores, model, events[i], static_cast<std::uint32_t>(i));
    Estimate e = split_one(
        law, scores, event, config, alone, [&](const Progress& p) { return sum.tell(i, p.done); }, model);
    const std::lock_guard lock(telling);
    options.on_estimate(i, std::move(e));
  });
}

}  // namespace deeptail
