// Judges and probes as events.
#pragma once

#include <memory>

#include "deeptail/event.h"
#include "deeptail/load.h"
#include "deeptail/patterns.h"
#include "deeptail/sampling.h"
#include "events/event_spec.h"
#include "events/text_score.h"

namespace deeptail {

struct ScoreSettings {
  double judge_timeout = 120.0;  // seconds
};

// Of a judge or a probe; texts: null where the model has no tokenizer. Throws InputError.
std::shared_ptr<const TextScore> make_text_score(const EventSpec& spec, const ScoreSettings& settings,
                                                 const LoadedModel& model,
                                                 const std::shared_ptr<const TokenTexts>& texts);
// A probe of the prompt samples nothing; everything else is known when a text of spec.within tokens has ended.
std::unique_ptr<Event> make_scored_event(const EventSpec& spec, const SamplingConfig& sampling,
                                         const ScoreSettings& settings, const LoadedModel& model);

}  // namespace deeptail
