// static: splitting on finished texts, by tokensplit's own engine.
#include "core/stopwatch.h"
#include "deeptail/payoff.h"

namespace deeptail {

namespace {

constexpr std::uint64_t kStaticLearnPart = 1 << 17;

}  // namespace

Estimate static_split(const Transformer& model, const InputLaw& law, const Event& event,
                      const TokensplitConfig& wanted, ThreadPool& pool, const Watch& watch) {
  TokensplitConfig config = wanted;
  if (config.budget == 0.0) config.budget = static_budget(model.config(), law, event);
  // Texts that go on anew forget soon: more of them are worth more than further moves.
  constexpr std::size_t kTextMoves = 16;
  if (config.moves == 0 && event.answer_length() > 0) config.moves = kTextMoves;
  const ContinuationEvent* pattern = event.continuation();
  if (pattern == nullptr || pattern->sampling().greedy)
    return tokensplit(model, law, event, config, pool, watch);
  const Stopwatch stopwatch;
  Work work;
  const LearnConfig learning = learning_within(config.budget, derived_seed(config.seed, kStaticLearnPart));
  const ContinuationEvent learnt = pattern->learnt(model, law, learning, pool, &work);
  Estimate e = tokensplit(model, law, learnt, config, pool, watch);
  e.cost.forward += work.forwards;
  e.cost.flops += work.flops;
  e.cost.forward_equivalents = e.cost.flops / event.score_flops(model.config(), law);
  e.cost.seconds = stopwatch.seconds();
  return e;
}

}  // namespace deeptail
