// A pattern in a continuation, as an event.
#include "deeptail/continuation.h"

#include <algorithm>

#include "core/json.h"
#include "events/pattern_scorer.h"
#include "events/sampling_json.h"

namespace deeptail {

ContinuationEvent::ContinuationEvent(std::shared_ptr<const TextPattern> pattern, SamplingConfig sampling)
    : pattern_(std::move(pattern)), sampling_(std::move(sampling)) {
  sampling_.validate(pattern_->automaton.d_vocab());
  tables_ = std::make_shared<const PatternTables>(pattern_->automaton, sampling_.max_tokens);
}

std::string ContinuationEvent::text() const { return pattern_->text; }

std::string ContinuationEvent::json() const {
  OrderedJson out = {{"kind", pattern_->kind}};
  out[pattern_->dfa ? "text" : "tokens"] = pattern_->value;
  add_sampling(out, sampling_);
  return json_text(out);
}

std::unique_ptr<Scorer> ContinuationEvent::scorer(const Transformer& model, const InputLaw& law,
                                                  const ScorerOptions& options, ThreadPool& pool) const {
  return std::make_unique<PatternScorer>(*this, 0, model, law, options, pool);
}

ScorerBytes ContinuationEvent::bytes(const ModelConfig& config, const InputLaw& law) const {
  ScorerBytes bytes = SampledTexts::bytes(config, law, sampling_);
  const double trace = 20.0 * static_cast<double>(sampling_.max_tokens);
  return {.scored = bytes.scored + trace, .held = bytes.held + trace};
}

double ContinuationEvent::score_flops(const ModelConfig& config, const InputLaw& law) const {
  return decoding_flops(config, 0, law.facts().max_length + sampling_.max_tokens - 1);
}

// All that comes after it is decoded anew.
double ContinuationEvent::change_flops(const ModelConfig& config, const InputLaw& law,
                                       std::size_t part) const {
  const std::size_t length = law.facts().max_length, n_parts = law.facts().n_parts;
  const std::size_t first = part < n_parts ? law.first_position(part) : length - 1 + part - n_parts;
  return decoding_flops(config, first, length + sampling_.max_tokens - 1);
}

AnswerText ContinuationEvent::answer_text(std::span<const TokenId> input,
                                          std::span<const TokenId> answer) const {
  if (!pattern_->texts) return {};
  const auto stop =
      std::find_if(answer.begin(), answer.end(), [&](TokenId id) { return sampling_.stops(id); });
  answer = answer.first(static_cast<std::size_t>(stop - answer.begin()));
  AnswerText out{.prompt = {}, .continuation = pattern_->texts->continuation(input, answer)};
  out.prompt = pattern_->texts->continuation({}, input);
  if (!pattern_->dfa) return out;
  if (const auto match = find_match(*pattern_->dfa, out.continuation)) {
    out.match_begin = match->begin;
    out.match_end = match->end;
  }
  return out;
}

std::span<const double> ContinuationEvent::chances() const { return tables_->chances(); }

ContinuationEvent ContinuationEvent::with_chances(std::vector<double> chances) const {
  ContinuationEvent out = *this;
  out.tables_ =
      std::make_shared<const PatternTables>(pattern_->automaton, sampling_.max_tokens, std::move(chances));
  return out;
}

ContinuationPayoff::ContinuationPayoff(const ContinuationEvent& event, std::size_t branches)
    : ContinuationEvent(event), branches_(std::max<std::size_t>(1, branches)) {}

std::unique_ptr<Scorer> ContinuationPayoff::scorer(const Transformer& model, const InputLaw& law,
                                                   const ScorerOptions& options, ThreadPool& pool) const {
  return std::make_unique<PatternScorer>(*this, branches_, model, law, options, pool);
}

// A state's chance is what branches that came to it found, and the chance before as one more of them.
ContinuationEvent ContinuationEvent::learnt(const Transformer& model, const InputLaw& law,
                                            const LearnConfig& config, ThreadPool& pool, Work* work) const {
  ContinuationEvent event = *this;
  if (tables_->one_step() || sampling_.greedy) return event;
  for (std::size_t round = 0; round < config.rounds; ++round) {
    PatternScorer scorer(event, config.branches, model, law, {}, pool);
    ChanceSums sums;
    sums.worth.assign(event.chances().begin(), event.chances().end());
    sums.visits.assign(sums.worth.size(), 1.0);
    scorer.record(&sums);
    const std::uint64_t first = round * config.texts;
    const Inputs inputs = sample_inputs(law, config.seed, first, config.texts, pool);
    const auto numbers = sample_numbers(event, law, config.seed, first, config.texts);
    std::vector<double> scores(config.texts);
    const Work done = scorer.scores({inputs.batch(), numbers}, scores);
    if (work != nullptr) *work += done;
    constexpr double kLeast = 1e-12;
    std::vector<double> chances;
    for (std::size_t s = 0; s < sums.worth.size(); ++s)
      chances.push_back(std::clamp(sums.worth[s] / sums.visits[s], kLeast, 1.0));
    event = event.with_chances(std::move(chances));
  }
  return event;
}

}  // namespace deeptail
