// Sequences in a Rescorer; a MarginTest decides.
#include "events/next_token.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
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
    take_hints({});
  }

  Work scores(const EventInputs& inputs, std::span<double> out) override;
  ScoreHints hints() const override { return {.usual_winners = most_frequent(others_)}; }
  Work hold(const EventInputs& inputs, const ScoreHints& hints) override;
  void copy_held(std::span<const std::uint32_t> parents) override { rescorer_.resample(parents); }
  void take_hints(const ScoreHints& hints) override;
  Work held_scores(std::size_t first, std::span<double> out) override;
  Work rescore(const Proposals& proposals, std::span<double> out) override;
  Work decide(double level, const Proposals& proposals, std::span<std::uint8_t> accept) override;

 private:
  Work forwards(TokenBatch batch) const;
  Work score_proposals(std::span<double> out);
  std::uint64_t score_residuals(std::span<double> out);
  void remember_others() {
    for (const Margin& margin : margins_) others_.push_back(margin.best_other);
  }
  Work take(const Proposals& proposals);  // into proposals_
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
  final_residuals(model_, inputs.inputs, pool_, {resid_.data(), d}, options_.table);
  score_residuals(out);
  remember_others();
  return forwards(inputs.inputs);
}

// Of resid_. Returns the logits that were computed in full.
std::uint64_t NextTokenScorer::score_residuals(std::span<double> out) {
  constexpr std::size_t kRows = 96;
  const std::size_t n = out.size(), d = model_.config().d_model;
  margins_.resize(n);
  pool_.for_each_block((n + kRows - 1) / kRows, [&](std::size_t block, std::size_t worker) {
    const std::size_t first = block * kRows, some = std::min(kRows, n - first);
    logits_[worker] += test_->margins(some, {resid_.data() + first * d, d},
                                      std::span(margins_).subspan(first, some), *scratch_[worker]);
  });
  for (std::size_t i = 0; i < n; ++i) out[i] = score_of(margins_[i]);
  std::uint64_t logits = 0;
  for (std::uint64_t& count : logits_) logits += std::exchange(count, 0);
  return logits;
}

// Each of them once: inputs that go on from a level are often copies.
Work NextTokenScorer::hold(const EventInputs& inputs, const ScoreHints& hints) {
  const TokenBatch batch = inputs.inputs;
  const DistinctRows rows = distinct_rows(batch);
  Inputs distinct;
  distinct.resize(rows.first.size(), batch.length);
  for (std::size_t i = 0; i < rows.first.size(); ++i) {
    std::copy_n(batch.row(rows.first[i]), batch.length, distinct.row(i).begin());
    distinct.lengths[i] = static_cast<std::uint32_t>(batch.length_of(rows.first[i]));
  }
  rescorer_.reset(distinct.batch());
  // Nobody is a copy of a slot after its own.
  for (std::size_t i = batch.size(); i-- > 0;) rescorer_.copy_slot(rows.same_as[i], i);
  take_hints(hints);
  return forwards(distinct.batch());
}

void NextTokenScorer::take_hints(const ScoreHints& hints) {
  others_.clear();
  test_.emplace(model_.head(), target_, hints.usual_winners, options_.screen);
  scratch_.clear();
  for (std::size_t w = 0; w < pool_.size(); ++w) scratch_.push_back(test_->make_scratch());
}

// A lost tie has a margin of 0 and a score below it, so 0 asks for the event itself.
std::uint64_t NextTokenScorer::ask(double level, std::size_t n, ConstRows resid,
                                   std::span<std::uint8_t> accept, std::size_t worker) const {
  MarginTest::Scratch& scratch = *scratch_[worker];
  return level == 0.0 ? test_->event(n, resid, accept, scratch)
                      : test_->at_least(level, n, resid, accept, scratch);
}

Work NextTokenScorer::take(const Proposals& p) {
  const TokenBatch batch = p.changed.inputs;
  Work work{.rescored = batch.size()};
  proposals_.clear();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::size_t length = batch.length_of(i);
    proposals_.push_back({p.held[i], batch.row(i), length});
    work.flops +=
        rescoring_flops(model_.config(), length, std::min<std::size_t>(p.first_changed[i], length - 1));
  }
  return work;
}

Work NextTokenScorer::rescore(const Proposals& p, std::span<double> out) {
  Work work = take(p);
  work += score_proposals(out);
  return work;
}

// As proposals that change nothing: their last position is all that is computed.
Work NextTokenScorer::held_scores(std::size_t first, std::span<double> out) {
  Work work{.rescored = out.size()};
  proposals_.clear();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto tokens = rescorer_.tokens(first + i);
    proposals_.push_back({first + i, tokens.data(), tokens.size()});
    work.flops += rescoring_flops(model_.config(), tokens.size(), tokens.size() - 1);
  }
  work += score_proposals(out);
  remember_others();
  return work;
}

// Exact scores of proposals_, none of which is taken; without the passes, which are counted elsewhere.
Work NextTokenScorer::score_proposals(std::span<double> out) {
  const std::size_t n = out.size(), d = model_.config().d_model;
  if (resid_.size() < n * d) resid_.resize(n * d);
  const auto keep = [&](std::size_t at, std::size_t count, ConstRows resid, std::span<std::uint8_t> accept,
                        std::size_t) {
    for (std::size_t i = 0; i < count; ++i) std::copy_n(resid.row(i), d, resid_.data() + (at + i) * d);
    std::fill_n(accept.begin(), count, std::uint8_t{0});
  };
  rescorer_.propose(proposals_, std::ref(keep));
  Work work{.logits = score_residuals(out)};
  const double screened = options_.screen == nullptr ? 0.0 : screened_logits(n, model_.config());
  work.flops = 2.0 * static_cast<double>(d) * (static_cast<double>(work.logits) + screened);
  return work;
}

Work NextTokenScorer::decide(double level, const Proposals& p, std::span<std::uint8_t> accept) {
  const TokenBatch batch = p.changed.inputs;
  const ModelConfig& config = model_.config();
  Work work = take(p);
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

// The target's logit, those of the usual winners, and all others in 8 bits.
double exact_rescoring_flops(const ModelConfig& config, std::size_t length, std::size_t first_changed) {
  const std::size_t in_full = std::min(1 + kUsualWinners, config.d_vocab);
  return rescoring_flops(config, length, first_changed) +
         2.0 * static_cast<double>(config.d_model) *
             (static_cast<double>(in_full) + screened_logits(1, config));
}

DistinctRows distinct_rows(TokenBatch batch) {
  DistinctRows out;
  std::unordered_map<std::string_view, std::uint32_t> known;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto tokens = std::as_bytes(batch.sequence(i));
    const std::string_view key(reinterpret_cast<const char*>(tokens.data()), tokens.size());
    const auto [at, is_new] = known.try_emplace(key, static_cast<std::uint32_t>(out.first.size()));
    if (is_new) out.first.push_back(static_cast<std::uint32_t>(i));
    out.same_as.push_back(at->second);
  }
  return out;
}

double screened_logits(std::uint64_t accepted, const ModelConfig& config) {
  return 0.25 * static_cast<double>(accepted) * static_cast<double>(config.d_vocab);
}

std::string NextToken::text() const { return fmt::format("says {}", fmt::join(target_.ids(), " or ")); }

std::unique_ptr<Scorer> NextToken::scorer(const Transformer& model, const InputLaw& law,
                                          const ScorerOptions& options, ThreadPool& pool) const {
  return std::make_unique<NextTokenScorer>(model, target_, law, options, pool);
}

double NextToken::change_flops(const ModelConfig& config, const InputLaw& law, std::size_t part) const {
  return exact_rescoring_flops(config, law.facts().max_length, law.first_position(part));
}
double NextToken::held_score_flops(const ModelConfig& config, const InputLaw& law) const {
  const std::size_t length = law.facts().max_length;
  return exact_rescoring_flops(config, length, length - 1);
}

ScorerBytes NextToken::bytes(const ModelConfig& config, const InputLaw& law) const {
  return {.scored = sizeof(float) * static_cast<double>(config.d_model),
          .held = static_cast<double>(
              Rescorer::bytes_per_slot(config, law.facts().max_length, constant_prefix_length(law)))};
}

}  // namespace deeptail
