// ga-amls: adaptive multilevel splitting on activations under a fitted prior (docs/ga-amls.md).
#pragma once

#include <functional>
#include <string_view>

#include "deeptail/activations.h"
#include "deeptail/device.h"
#include "deeptail/enum_names.h"
#include "deeptail/estimators.h"
#include "deeptail/kernels.h"

namespace [[gnu::visibility("default")]] deeptail {

enum class GaPrior {
  kStudentT,         // unit scale: the paper's
  kStudentTMatched,  // unit variance
  kGaussian,
  kConditioned,  // mean of the last varying token's group + t residual of unit variance
};
template <>
struct EnumNames<GaPrior> {
  static constexpr std::string_view kAll[] = {"student_t", "student_t_matched", "gaussian", "conditioned"};
};

enum class GaStart {
  kCalibration,  // particles start at whitened calibration activations: the paper's Algorithm 1, line 5
  kPrior,        // at draws from the prior: then the estimate is consistent for the prior's own probability
};
template <>
struct EnumNames<GaStart> {
  static constexpr std::string_view kAll[] = {"calibration", "prior"};
};

// The paper's settings (appendix D).
struct GaAmlsConfig {
  GaPrior prior = GaPrior::kStudentT;
  GaStart start = GaStart::kCalibration;
  KernelConfig kernel = {};
  std::size_t n_particles = 2000;
  double survive_fraction = 0.4;  // the level is the 0.6-quantile of the scores
  std::size_t max_levels = 200;
  int nu = 5;
  std::size_t replicas = 1;
  double relative_ridge = 1e-6;
  std::size_t min_group = 16;  // conditioned: smaller groups are taken together
  std::uint64_t seed = 1;
  Device device = Device::kCpu;
  void validate() const;
};

// Memory that a run on n activations takes.
double ga_amls_bytes(const GaAmlsConfig& config, std::size_t n, std::size_t d_model);

// Called after each level and, on the CPU, now and then while its particles move; false ends the run.
struct GaProgress {
  std::size_t replica, level;
  double score_level, log_p;
  double moved = 0.0;  // share of the moves since that level; log_p then is on its way to the next
};
using GaKeepGoing = std::function<bool(const GaProgress&)>;

// The probability that an activation drawn from the prior gives the target. The interval covers the
// splitting's own randomness (of `replicas` runs, or of the one run by its genealogy), not the prior's
// misfit, which is the larger error: hence guarantee model_based. Diagnostics tell how far the final
// particles lie from the calibration cloud.
Estimate ga_amls(const Head& head, const Activations& activations, const Target& target,
                 const GaAmlsConfig& config, ThreadPool& pool, const GaKeepGoing& keep_going = {});

}  // namespace deeptail
