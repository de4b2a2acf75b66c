// split: tokensplit's engine on scores of a user's own.
#include "deeptail/split.h"

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

}  // namespace

Estimate split(const InputLaw& law, CalledScores& scores, const TokensplitConfig& wanted, ThreadPool& pool,
               const Watch& watch, const Transformer* model) {
  TokensplitConfig config = wanted;
  if (config.budget == 0.0) config.budget = kSplitBudget;
  if (scores.config().numbers > 0) config.tilt = Tilting::kNone;  // a scan knows nothing of them
  const CalledEvent event(scores, model);
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

}  // namespace deeptail
