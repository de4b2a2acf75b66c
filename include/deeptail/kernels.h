// Kernels for particles that are points u of R^d with a product prior: rwmh, mala, mapla, pcn.
//
// Each leaves the prior restricted to score >= level as it is. A proposal is first accepted or not for the
// prior's sake, and only then scored: the same law with fewer scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "deeptail/enum_names.h"
#include "deeptail/prior.h"
#include "deeptail/splitting.h"

namespace [[gnu::visibility("default")]] deeptail {

enum class KernelKind {
  kRwmh,   // u' = u + sqrt(2h) xi
  kMala,   // u' = u + h grad log prior + sqrt(2h) xi
  kMapla,  // the same with the metric diag((nu + 1) / (nu + u^2)) of the t prior
  kPcn,    // u' = sqrt(1 - b^2) u + b xi, b^2 = 2h; for the t prior with scales drawn anew: no prior ratio
};
template <>
struct EnumNames<KernelKind> {
  static constexpr std::string_view kAll[] = {"rwmh", "mala", "mapla", "pcn"};
};

struct KernelConfig {
  KernelKind kind = KernelKind::kMala;
  std::size_t moves = 900;         // per level, burn-in included
  std::size_t burn_in = 126;       // in which the step size adapts
  double step_size = 1e-3;         // h at the first level; later ones go on from the last
  double adaptation = 0.1;         // h <- h exp(adaptation * (acceptance - wanted)) after every burn-in move
  double wanted_acceptance = 0.0;  // 0: 0.57 for mala and mapla, 0.234 for rwmh, 0.3 for pcn
  std::size_t group_every = 2;     // moves between proposals of another group
  // Under a t prior every tail_every-th move of rwmh and mala is one of pcn, whose steps grow with where a
  // particle is: theirs do not, and cross the tails slowly. 0: none.
  std::size_t tail_every = 8;
  // Of every level, from a pilot: nothing adapts, and with frozen levels the estimate is unbiased.
  std::vector<double> frozen_steps = {};

  double wanted() const;
  bool steps_are_fixed() const { return kind == KernelKind::kRwmh || kind == KernelKind::kMala; }
  // The kernel of a move, and the step size of one that is for the tails: sizes take turns, so that none need
  // adapt.
  KernelKind kind_of(std::size_t move, const ProductPrior& prior) const;
  double tail_step(std::size_t move) const;
  void validate() const;
};

// Proposals for a block of particles, with what the acceptance needs. All rows: [n, dim].
struct ProposalBlock {
  std::size_t n = 0;
  ConstRows u = {}, gradient = {};           // now; gradients for mala only
  std::span<const double> log_density = {};  // now: [n]; not for pcn
  ConstRows noise = {};
  Rows proposed = {}, proposed_gradient = {};
  std::span<double> proposed_log_density = {};  // [n]
  std::span<double> log_ratio = {};             // [n]: of the Metropolis-Hastings ratio without the score
};
// mixing: [dim] scratch; seed and indices: [n] key pcn's scales.
void propose(KernelKind kind, const ProductPrior& prior, double step_size, const ProposalBlock& block,
             std::uint64_t seed, std::span<const std::uint64_t> indices, std::span<float> mixing);

// What a kernel keeps per particle besides its place.
struct KernelNeeds {
  bool log_density, gradient;
};
KernelNeeds needs_of(KernelKind kind, const ProductPrior& prior);

// How far particles went within a level.
struct JumpStats {
  double mean_squared = 0.0;  // per dimension
  double correlation = 0.0;   // of before and after, over particles and dimensions, each dimension centred
};
JumpStats measure_jump(std::size_t n, std::size_t dim, ConstRows before, ConstRows after);

}  // namespace deeptail
