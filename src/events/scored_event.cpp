#include "events/scored_event.h"

#include "events/finished_text.h"
#include "events/judge.h"
#include "events/probe.h"

namespace deeptail {

namespace {

std::shared_ptr<const Probe> probe_of(const EventSpec& spec, const LoadedModel& model) {
  return std::make_shared<const Probe>(read_probe(spec.value), spec.threshold, model.transformer);
}

}  // namespace

std::shared_ptr<const TextScore> make_text_score(const EventSpec& spec, const ScoreSettings& settings,
                                                 const LoadedModel& model,
                                                 const std::shared_ptr<const TokenTexts>& texts) {
  if (spec.kind == EventKind::kProbe) return std::make_shared<const ProbeScore>(probe_of(spec, model));
  if (!texts) throw InputError("model {} has no tokenizer, so there is no text to judge", model.name);
  return std::make_shared<const Judge>(
      JudgeConfig{.command = spec.value, .threshold = spec.threshold, .timeout = settings.judge_timeout},
      texts);
}

std::unique_ptr<Event> make_scored_event(const EventSpec& spec, const SamplingConfig& sampling,
                                         const ScoreSettings& settings, const LoadedModel& model) {
  if (spec.kind == EventKind::kProbe) {
    const auto probe = probe_of(spec, model);
    if (spec.within == 0 && probe->file().place == ProbeFile::Place::kContinuation)
      throw InputError("{}: a probe of the continuation: expected how many tokens that has",
                       probe->file().name);
    if (spec.within == 0) return std::make_unique<ProbeEvent>(probe, json_text(json_of(spec)));
  }
  std::shared_ptr<const TokenTexts> texts;
  if (model.tokenizer)
    texts =
        std::make_shared<const TokenTexts>(token_texts(model.tokenizer->tokenizer, model.config().d_vocab));
  return std::make_unique<FinishedTextEvent>(spec, make_text_score(spec, settings, model, texts), sampling,
                                             texts);
}

}  // namespace deeptail
