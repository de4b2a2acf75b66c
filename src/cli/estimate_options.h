// What `deeptail estimate` takes and gives, and its methods by family.
#pragma once

#include <optional>
#include <string>

#include "cli/tokens.h"
#include "deeptail/estimators.h"

namespace deeptail::cli {

// Flags of `deeptail estimate`; 0 and "" leave a setting to the method.
struct EstimateOptions {
  std::string model, dist, target, method = "tokensplit", budget, device = "cpu";
  std::string activations, unembed, calibration = "2^16";
  std::string prior = "student_t", kernel = "mala", start = "calibration";
  std::string normaliser = "harmonic", burn_in;
  std::uint64_t seed = 1;
  std::size_t replicas = 0, particles = 0, moves = 0, first_draw = 0, threads = 0, chains = 0;
  double rel_error = 0.0, survive_fraction = 0.0, forgotten = 0.0, taper = 0.0, temperature = 0.0;
  bool json = false, quiet = false;
};

struct EstimateOutcome {
  Estimate estimate;
  std::optional<NamedTokenizer> tokenizer;
};

// Throws InputError unless there is a model and a distribution.
void check_has_model(const EstimateOptions& options);

// Nothing when the method does not follow gradients (itgis, mhis).
std::optional<EstimateOutcome> run_gradient_method(const EstimateOptions& options, ThreadPool& pool);
// Nothing when the method does not work on activations.
std::optional<EstimateOutcome> run_cloud_method(const EstimateOptions& options, ThreadPool& pool);

}  // namespace deeptail::cli
