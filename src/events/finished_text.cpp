#include "events/finished_text.h"

#include <algorithm>

#include "events/sampled_texts.h"
#include "events/sampling_json.h"

namespace deeptail {

namespace {

// What was said, without the token that ended it.
std::span<const TokenId> without_stop(std::span<const TokenId> answer, const SamplingConfig& sampling) {
  return !answer.empty() && sampling.stops(answer.back()) ? answer.first(answer.size() - 1) : answer;
}

class FinishedTextScorer final : public Scorer {
 public:
  FinishedTextScorer(const TextScore& score, const SamplingConfig& sampling, const Transformer& model,
                     const InputLaw& law, const ScorerOptions& options, ThreadPool& pool)
      : score_(score),
        sampling_(sampling),
        pool_(pool),
        texts_(model, law, sampling, options.max_held, pool),
        held_scores_(options.max_held) {}

  Work scores(const EventInputs& inputs, std::span<double> out) override {
    texts_.set(inputs);
    return {.forwards = out.size(), .flops = decode(out, [](std::size_t) {})};
  }
  Work hold(const EventInputs& inputs, const ScoreHints&) override {
    texts_.set(inputs);
    std::vector<double> found(inputs.inputs.size());
    const double flops = decode(found, [&](std::size_t i) {
      texts_.keep(i);
      held_scores_[i] = found[i];
    });
    return {.forwards = found.size(), .flops = flops};
  }
  Work rescore(const Proposals& proposals, std::span<double> out) override {
    texts_.set_changed(proposals);
    return {.rescored = out.size(), .flops = decode(out, [](std::size_t) {})};
  }
  Work decide(double level, const Proposals& proposals, std::span<std::uint8_t> accept) override {
    texts_.set_changed(proposals);
    std::vector<double> found(accept.size());
    const double flops = decode(found, [&](std::size_t i) {
      accept[i] = found[i] >= level;
      if (accept[i] == 0) return;
      held_scores_[texts_.held_of(i)] = found[i];
      texts_.keep(i);
    });
    return {.rescored = accept.size(), .flops = flops};
  }
  TokenBatch answers() const override { return answers_.batch(); }

 private:
  // then(i): told of every row when its score is known and its keys are there.
  template <class Then>
  double decode(std::span<double> out, const Then& then) {
    double own = 0.0;
    const double decoded = texts_.decode([&](std::size_t first, std::size_t n) {
      std::vector<SampledText> asked;
      std::vector<std::size_t> who;
      for (std::size_t i = first; i < first + n; ++i) {
        if (texts_.is_same(i)) {
          out[i] = held_scores_[texts_.held_of(i)];
          continue;
        }
        asked.push_back({texts_.rows().input(i), without_stop(texts_.rows().answer(i), sampling_)});
        who.push_back(i);
        own += score_.flops(texts_.rows().length[i]);
      }
      std::vector<double> found(asked.size());
      if (!asked.empty()) score_.scores(asked, found, pool_);
      for (std::size_t k = 0; k < who.size(); ++k) out[who[k]] = found[k];
      for (std::size_t i = first; i < first + n; ++i) then(i);
    });
    take_answers();
    return decoded + own;
  }
  void take_answers() {
    const TextRows& rows = texts_.rows();
    answers_.resize(rows.size(), sampling_.max_tokens);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto answer = rows.answer(i);
      const auto to = answers_.row(i);
      std::fill(std::copy(answer.begin(), answer.end(), to.begin()), to.end(), 0);
      answers_.lengths[i] = static_cast<std::uint32_t>(answer.size());
    }
  }

  const TextScore& score_;
  const SamplingConfig& sampling_;
  ThreadPool& pool_;
  SampledTexts texts_;
  std::vector<double> held_scores_;
  Inputs answers_;
};

}  // namespace

FinishedTextEvent::FinishedTextEvent(EventSpec spec, std::shared_ptr<const TextScore> score,
                                     SamplingConfig sampling, std::shared_ptr<const TokenTexts> texts)
    : spec_(std::move(spec)),
      score_(std::move(score)),
      sampling_(std::move(sampling)),
      texts_(std::move(texts)) {
  sampling_.max_tokens = spec_.within;
}

std::string FinishedTextEvent::json() const {
  OrderedJson out = json_of(spec_);
  add_sampling(out, sampling_);
  return json_text(out);
}

std::unique_ptr<Scorer> FinishedTextEvent::scorer(const Transformer& model, const InputLaw& law,
                                                  const ScorerOptions& options, ThreadPool& pool) const {
  return std::make_unique<FinishedTextScorer>(*score_, sampling_, model, law, options, pool);
}

ScorerBytes FinishedTextEvent::bytes(const ModelConfig& config, const InputLaw& law) const {
  return SampledTexts::bytes(config, law, sampling_);
}

double FinishedTextEvent::score_flops(const ModelConfig& config, const InputLaw& law) const {
  const std::size_t length = law.facts().max_length + sampling_.max_tokens - 1;
  return decoding_flops(config, 0, length) + score_->flops(length);
}

double FinishedTextEvent::change_flops(const ModelConfig& config, const InputLaw& law,
                                       std::size_t part) const {
  const std::size_t prompt = law.facts().max_length, n = law.facts().n_parts,
                    length = prompt + sampling_.max_tokens - 1;
  const std::size_t first = part < n ? law.first_position(part) : prompt - 1 + part - n;
  return decoding_flops(config, first, length) + score_->flops(length);
}

AnswerText FinishedTextEvent::answer_text(std::span<const TokenId> input,
                                          std::span<const TokenId> answer) const {
  if (!texts_) return {};
  return {.prompt = texts_->continuation({}, input),
          .continuation = texts_->continuation(input, without_stop(answer, sampling_))};
}

}  // namespace deeptail
