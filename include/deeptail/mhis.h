// Metropolis-Hastings importance sampling (Wu and Hilton 2025; docs/mhis.md).
#pragma once

#include "deeptail/enum_names.h"
#include "deeptail/estimators.h"

namespace [[gnu::visibility("default")]] deeptail {

// How Z = E_p[exp(target logit / temperature)] is found.
enum class Normaliser {
  kHarmonic,  // 1 / Z = the chains' mean of exp(-target logit / temperature), as published; in logs
  kBridge,    // Meng and Wong's bridge between the chains and plain inputs
};
template <>
struct EnumNames<Normaliser> {
  static constexpr std::string_view kAll[] = {"harmonic", "bridge"};
};

struct MhisConfig {
  std::uint64_t samples = 1 << 16;  // over all chains, after the burn-in; rounded down to whole steps
  std::size_t chains = 32;
  std::uint64_t burn_in = 1 << 10;  // steps of every chain
  double temperature = 1.0;         // of the chains' law and of the proposals
  std::uint64_t seed = 1;
  Normaliser normaliser = Normaliser::kHarmonic;
  std::uint64_t bridge_inputs = 1 << 14;  // plain inputs for the bridge
  std::uint64_t bound_inputs = 1 << 14;   // plain inputs for the upper bound when no chain saw the event
  std::size_t max_triggers = 3;
  std::uint64_t work() const { return samples + chains * burn_in; }  // proposals
  void validate() const;
};

// Chains with the law pi(x) = p(x) exp(target logit(x) / temperature) / Z. A step proposes a token at one
// free position i, from p(token) exp(g_i . W_E[token] / temperature), g the gradient of the target logit at
// the current input, and accepts with the chances of both directions. The estimate is E_pi[event exp(-target
// logit / temperature)] Z. The watch is told proposals, burn-in included.
Estimate mhis(const Transformer& model, const Distribution& dist, const Target& target,
              const MhisConfig& config, ThreadPool& pool, const Watch& watch = {});

}  // namespace deeptail
