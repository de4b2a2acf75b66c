// An event that is known when a sampled text has ended: by a judge, or a probe of the continuation.
#pragma once

#include <memory>
#include <string>

#include "deeptail/event.h"
#include "deeptail/patterns.h"
#include "deeptail/sampling.h"
#include "events/event_spec.h"
#include "events/text_score.h"

namespace deeptail {

class FinishedTextEvent final : public Event {
 public:
  // texts: null where tokens have no texts.
  FinishedTextEvent(EventSpec spec, std::shared_ptr<const TextScore> score, SamplingConfig sampling,
                    std::shared_ptr<const TokenTexts> texts);

  std::string text() const override { return score_->text(); }
  std::string json() const override;
  std::size_t n_parts() const override { return sampling_.greedy ? 0 : sampling_.max_tokens; }
  std::size_t answer_length() const override { return sampling_.max_tokens; }
  std::unique_ptr<Scorer> scorer(const Transformer& model, const InputLaw& law, const ScorerOptions& options,
                                 ThreadPool& pool) const override;
  ScorerBytes bytes(const ModelConfig& config, const InputLaw& law) const override;
  double score_flops(const ModelConfig& config, const InputLaw& law) const override;
  double change_flops(const ModelConfig& config, const InputLaw& law, std::size_t part) const override;
  AnswerText answer_text(std::span<const TokenId> input, std::span<const TokenId> answer) const override;

 private:
  EventSpec spec_;
  std::shared_ptr<const TextScore> score_;
  SamplingConfig sampling_;
  std::shared_ptr<const TokenTexts> texts_;
};

}  // namespace deeptail
