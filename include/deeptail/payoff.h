// payoff: the probability of a pattern in a sampled continuation as the mean of what texts pay (docs/events.md).
#pragma once

#include "deeptail/continuation.h"
#include "deeptail/enum_names.h"
#include "deeptail/estimators.h"

namespace [[gnu::visibility("default")]] deeptail {

enum class PayoffLevels { kAuto, kNone, kAlways };
template <>
struct EnumNames<PayoffLevels> {
  static constexpr std::string_view kAll[] = {"auto", "none", "always"};
};

struct PayoffConfig {
  double budget = 0.0;  // whole texts: flops over those of one that does not end early; 0: text_budget()
  std::size_t replicas = 8;
  std::size_t branches = 0;  // tries to finish the pattern in each text; 0: as a pilot says
  // Splitting on what texts may pay, or their plain mean. kAuto: the mean, unless few texts would pay most of it.
  PayoffLevels levels = PayoffLevels::kAuto;
  std::uint64_t seed = 1;
  std::size_t max_triggers = 3;
  void validate() const;
};

// The default budget of payoff, in whole texts; of static eight times that.
double text_budget(const ModelConfig& config, const InputLaw& law, const Event& event);
double static_budget(const ModelConfig& config, const InputLaw& law, const Event& event);

// How a pattern's chances are learnt where all of an estimate may cost so many whole texts.
LearnConfig learning_within(double budget, std::uint64_t seed);

// Unbiased. Any law; the event's continuation must be sampled. The watch is told whole texts' work.
Estimate payoff(const Transformer& model, const InputLaw& law, const ContinuationEvent& event,
                const PayoffConfig& config, ThreadPool& pool, const Watch& watch = {});

}  // namespace deeptail
