#include "estimators/tokensplit/probe.h"

#include <algorithm>
#include <utility>

#include "events/next_token.h"

namespace deeptail {

std::size_t probe_slots(std::size_t contexts) {
  constexpr std::size_t kSlots = 256;
  return std::max<std::size_t>(1, kSlots / contexts) * contexts;
}

namespace {
// Whoever waits for scores from elsewhere holds nothing, and asks for many at once.
std::size_t slots_for(const Event& event, std::size_t contexts) {
  constexpr std::size_t kAtOnce = 1 << 14;
  return event.runs_model() ? probe_slots(contexts) : kAtOnce / contexts * contexts;
}
}  // namespace

CpuProbe::CpuProbe(const TokenProblem& problem, Inputs& contexts, std::size_t count, ThreadPool& pool)
    : slots_(slots_for(problem.event, count)),
      scorer_(problem.event.scorer(problem.model, problem.law,
                                   {.max_held = slots_, .table = problem.table, .screen = problem.screen},
                                   pool)) {
  if (!problem.event.runs_model()) return;
  Inputs copies;
  copies.resize(slots_, contexts.max_length);
  for (std::size_t i = 0; i < slots_; ++i) {
    const auto from = contexts.row(i % count);
    std::copy(from.begin(), from.end(), copies.row(i).begin());
    copies.lengths[i] = contexts.lengths[i % count];
  }
  held_ = scorer_->hold({copies.batch(), {}}, {});
}

Work CpuProbe::scores(const Inputs& changed, std::span<const std::uint32_t> first_changed,
                      std::span<double> out) {
  Work work = std::exchange(held_, {});
  std::vector<std::uint32_t> held(slots_);
  for (std::size_t i = 0; i < slots_; ++i) held[i] = static_cast<std::uint32_t>(i);
  for (std::size_t at = 0; at < changed.size(); at += slots_) {
    const std::size_t n = std::min(slots_, changed.size() - at);
    work += scorer_->rescore(
        {{changed.batch().part(at, n), {}}, std::span(held).first(n), first_changed.subspan(at, n)},
        out.subspan(at, n));
  }
  return work;
}

Work ServedProbe::scores(const Inputs& changed, std::span<const std::uint32_t> first_changed,
                         std::span<double> out) {
  const ModelConfig& config = problem_.model.config();
  const std::size_t n = changed.size(), length = changed.max_length;
  std::vector<Margin> margins(n);
  Work work;
  work.device_seconds =
      service_.margins(changed.tokens, length, problem_.event.next_token()->ids().front(), margins, true);
  for (std::size_t i = 0; i < n; ++i) out[i] = score_of(margins[i]);
  const std::size_t held = std::exchange(held_, 0);
  work.forwards = held;
  work.rescored = n;
  work.logits = n * config.d_vocab;
  work.flops = static_cast<double>(held) * forward_flops(config, length);
  for (const std::uint32_t position : first_changed)
    work.flops += exact_rescoring_flops(config, length, position);
  return work;
}

}  // namespace deeptail
