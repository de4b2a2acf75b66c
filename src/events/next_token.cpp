// Sequences in a Rescorer; a MarginTest decides.
#include "events/next_token.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "deeptail/event.h"

namespace deeptail {

namespace {

constexpr std::size_t kUsualWinners = 64;

std::vector<TokenId> most_frequent(std::span<const TokenId> tokens) {
  std::map<TokenId, std::size_t> counts;
  for (const TokenId token : tokens) ++counts[token];
  std::vector<std::pair<std::size_t, TokenId>> order;
  for (const auto& [id, count] : counts) order.emplace_back(count, id);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::vector<TokenId> out;
  for (std::size_t i = 0; i < std::min(kUsualWinners, order.size()); ++i) out.push_back(order[i].second);
  return out;
}

class NextTokenScorer final : public Scorer {
 public:
  NextTokenScorer(const Transformer& model, const Target& target, const InputLaw& law,
                  const ScorerOptions& options, ThreadPool& pool)
      : model_(model),
        target_(target),
        options_(options),
        pool_(pool),
        rescorer_(model, options.max_held, law.facts().max_length, pool, constant_prefix(law, pool)),
        logits_(pool.size(), 0) {
    proposals_.reserve(options.max_held);
  }

  Work scores(const EventInputs& inputs, std::span<double> out) override;
  ScoreHints hints() const override { return {.usual_winners = most_frequent(others_)}; }
  Work hold(const EventInputs& inputs, const ScoreHints& hints) override;
  Work decide(double level, const Proposals& proposals, std::span<std::uint8_t> accept) override;

 private:
  Work forwards(TokenBatch batch) const;
  std::uint64_t ask(double level, std::size_t n, ConstRows resid, std::span<std::uint8_t> accept,
                    std::size_t worker) const;

  const Transformer& model_;
  const Target& target_;
  ScorerOptions options_;
  ThreadPool& pool_;
  Rescorer rescorer_;
  AlignedVector<float> resid_;   // [n, d_model]
  std::vector<Margin> margins_;  // [n]
  std::vector<TokenId> others_;  // that were in the target's way since the last hold()
  // Of what is held: nothing is allocated per decision.
  std::optional<MarginTest> test_;
  std::vector<MarginTest::ScratchPtr> scratch_;  // [worker]
  std::vector<Rescorer::Proposal> proposals_;
  std::vector<std::uint64_t> logits_;  // [worker]
};

Work NextTokenScorer::forwards(TokenBatch batch) const {
  Work work{.forwards = batch.size()};
  for (std::size_t i = 0; i < batch.size(); ++i)
    work.flops += forward_flops(model_.config(), batch.length_of(i));
  return work;
}

Work NextTokenScorer::scores(const EventInputs& inputs, std::span<double> out) {
  const std::size_t n = out.size(), d = model_.config().d_model;
  if (resid_.size() < n * d) resid_.resize(n * d);
  margins_.resize(n);
  final_residuals(model_, inputs.inputs, pool_, {resid_.data(), d}, options_.table);
  margins(model_.head(), target_, n, {resid_.data(), d}, pool_, margins_);
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = score_of(margins_[i]);
    others_.push_back(margins_[i].best_other);
  }
  return forwards(inputs.inputs);
}

Work NextTokenScorer::hold(const EventInputs& inputs, const ScoreHints& hints) {
  rescorer_.reset(inputs.inputs);
  others_.clear();
  test_.emplace(model_.head(), target_, hints.usual_winners, options_.screen);
  scratch_.clear();
  for (std::size_t w = 0; w < pool_.size(); ++w) scratch_.push_back(test_->make_scratch());
  return forwards(inputs.inputs);
}

// A lost tie has a margin of 0 and a score below it, so 0 asks for the event itself.
std::uint64_t NextTokenScorer::ask(double level, std::size_t n, ConstRows resid,
                                   std::span<std::uint8_t> accept, std::size_t worker) const {
  MarginTest::Scratch& scratch = *scratch_[worker];
  return level == 0.0 ? test_->event(n, resid, accept, scratch)
                      : test_->at_least(level, n, resid, accept, scratch);
}

Work NextTokenScorer::decide(double level, const Proposals& p, std::span<std::uint8_t> accept) {
  const TokenBatch batch = p.changed.inputs;
  const ModelConfig& config = model_.config();
  Work work{.rescored = batch.size()};
  proposals_.clear();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::size_t length = batch.length_of(i);
    proposals_.push_back({p.held[i], batch.row(i), length});
    work.flops += rescoring_flops(config, length, std::min<std::size_t>(p.first_changed[i], length - 1));
  }
  const auto answer = [&](std::size_t at, std::size_t n, ConstRows resid, std::span<std::uint8_t> accepted,
                          std::size_t worker) {
    logits_[worker] += ask(level, n, resid, accepted, worker);
    std::copy_n(accepted.begin(), n, accept.begin() + static_cast<std::ptrdiff_t>(at));
  };
  rescorer_.propose(proposals_, std::ref(answer));
  for (std::uint64_t& count : logits_) work.logits += std::exchange(count, 0);
  auto paid = static_cast<double>(work.logits);
  // Whoever is accepted was compared with the whole vocabulary, in 8 bits where there is a screen.
  if (options_.screen != nullptr)
    paid +=
        screened_logits(static_cast<std::uint64_t>(std::count(
                            accept.begin(), accept.begin() + static_cast<std::ptrdiff_t>(batch.size()), 1)),
                        config);
  work.flops += 2.0 * static_cast<double>(config.d_model) * paid;
  return work;
}

}  // namespace

double score_of(const Margin& margin) {
  if (margin.value == 0.0f && !margin.event()) return -std::numeric_limits<double>::denorm_min();
  return margin.value;
}

double screened_logits(std::uint64_t accepted, const ModelConfig& config) {
  return 0.25 * static_cast<double>(accepted) * static_cast<double>(config.d_vocab);
}

std::string NextToken::text() const { return fmt::format("says {}", fmt::join(target_.ids(), " or ")); }

std::unique_ptr<Scorer> NextToken::scorer(const Transformer& model, const InputLaw& law,
                                          const ScorerOptions& options, ThreadPool& pool) const {
  return std::make_unique<NextTokenScorer>(model, target_, law, options, pool);
}

ScorerBytes NextToken::bytes(const ModelConfig& config, const InputLaw& law) const {
  return {.scored = sizeof(float) * static_cast<double>(config.d_model),
          .held = static_cast<double>(
              Rescorer::bytes_per_slot(config, law.facts().max_length, constant_prefix_length(law)))};
}

}  // namespace deeptail
