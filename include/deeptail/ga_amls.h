// ga-amls: adaptive multilevel splitting on activations under a fitted prior (docs/ga-amls.md).
#pragma once

#include <string_view>

#include "deeptail/activations.h"
#include "deeptail/device.h"
#include "deeptail/enum_names.h"
#include "deeptail/estimators.h"
#include "deeptail/kernels.h"
#include "deeptail/watch.h"

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
  double likely_log_p = -16.0;  // about the log of the answer: how far a run is, is told by it alone
  void validate() const;
};

// Memory that a run on n activations takes.
double ga_amls_bytes(const GaAmlsConfig& config, std::size_t n, std::size_t d_model);

// The probability that an activation drawn from the prior gives the target. The interval covers the
// splitting's own randomness (of `replicas` runs, or of the one run by its genealogy), not the prior's
// misfit, which is the larger error: hence guarantee model_based. Diagnostics tell how far the final
// particles lie from the calibration cloud.
//
// The watch is told levels of all replicas, with a note; on the CPU it is also asked now and then while
// particles move, without one.
Estimate ga_amls(const Head& head, const Activations& activations, const Target& target,
                 const GaAmlsConfig& config, ThreadPool& pool, const Watch& watch = {});

// One of many targets.
struct GaAmlsTask {
  Target target;
  std::uint64_t seed = 1;
  double likely_log_p = -16.0;
};
inline constexpr std::size_t kGaTargetsAtOnce = 64;
// Many targets on the same activations, at most `at_once` side by side, on a device. Every estimate is the one that
// ga_amls() gives with its seed, to the bit, but for cost.seconds: its share of the device's time.
void ga_amls_many(const Head& head, const Activations& activations, std::span<const GaAmlsTask> tasks,
                  const GaAmlsConfig& config, const Answers& answers, std::size_t at_once, ThreadPool& pool,
                  const Watch& watch = {});

}  // namespace deeptail
