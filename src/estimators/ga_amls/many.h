// Many targets of ga-amls on a device, side by side.
#pragma once

#include "deeptail/ga_amls.h"

namespace deeptail {

struct GaFit;

// What all of them share.
struct GaShared {
  const Head& head;
  const Activations& activations;
  const GaFit& fit;
  const GaAmlsConfig& config;
};

// As ga_amls_many. The pool draws the start of a single target; several draw theirs each on a thread of its own.
void ga_amls_on_device(const GaShared& shared, std::span<const GaAmlsTask> tasks, const Answers& answers,
                       std::size_t at_once, ThreadPool& pool, const Watch& watch);

}  // namespace deeptail
