// From runs to an estimate, with its warnings and diagnostics.
#pragma once

#include "estimators/ga_amls/replicas.h"

namespace deeptail {

struct GaProblem {
  const Head& head;
  const Activations& activations;
  const Target& target;
  const GaFit& fit;
  const GaAmlsConfig& config;
};

// All but its seconds.
Estimate ga_answer(const GaProblem& problem, const GaOutcome& outcome);

}  // namespace deeptail
