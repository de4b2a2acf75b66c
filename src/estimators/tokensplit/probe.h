// Scores of contexts with some tokens changed, wherever populations live.
#pragma once

#include <span>

#include "estimators/tokensplit/particles.h"
#include "estimators/tokensplit/service.h"
#include "events/next_token.h"

namespace deeptail {

// Inputs that a probe of a model holds for so many contexts: copies of them, so that as many changed ones can be scored
// together.
std::size_t probe_slots(std::size_t contexts);

// Changed copy i is one of context i modulo the number of contexts.
class CpuProbe {
 public:
  // The first `count` of the contexts are used.
  CpuProbe(const TokenProblem& problem, Inputs& contexts, std::size_t count, ThreadPool& pool);
  // first_changed, out: [changed]; the earliest position that may differ.
  Work scores(const Inputs& changed, std::span<const std::uint32_t> first_changed, std::span<double> out);

 private:
  std::size_t slots_;
  std::unique_ptr<Scorer> scorer_;
  Work held_;  // told with the first scores
};

// The same by whole passes of a device, counted as the CPU counts them. What is probed only guides: rough
// scores will do.
class ServedProbe {
 public:
  // The first `count` of the contexts are used.
  ServedProbe(const TokenProblem& problem, Inputs& contexts, std::size_t count, ParticleService& service)
      : problem_(problem),
        held_(distinct_rows(contexts.batch().part(0, count)).first.size()),
        service_(service) {}
  Work scores(const Inputs& changed, std::span<const std::uint32_t> first_changed, std::span<double> out);

 private:
  const TokenProblem& problem_;
  std::size_t held_;
  ParticleService& service_;
};

}  // namespace deeptail
