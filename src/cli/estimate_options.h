// What `deeptail estimate` takes and gives, and its methods on clouds of activations.
#pragma once

#include <optional>
#include <string>

#include "cli/tokens.h"
#include "deeptail/estimators.h"

namespace deeptail::cli {

// Flags of `deeptail estimate`; what is not given is left to the method.
struct EstimateOptions {
  std::string model, dist, target, method = "tokensplit", budget, device = "cpu";
  std::string activations, unembed, calibration = "2^16";
  std::string prior = "student_t", kernel = "mala", start = "calibration";
  std::uint64_t seed = 1;
  std::size_t threads = 0;
  std::optional<std::size_t> replicas, particles, moves, first_draw;
  std::optional<double> rel_error, survive_fraction, forgotten, taper;
  bool json = false, quiet = false;
  std::vector<std::string> unused = {};  // flags given that the method does not take
};

struct EstimateOutcome {
  Estimate estimate;
  std::optional<NamedTokenizer> tokenizer;
};

// Throws InputError for a flag of ga-amls that makes no sense, whatever the method.
void check_cloud_flags(const EstimateOptions& options);
// Nothing when the method does not work on activations.
std::optional<EstimateOutcome> run_cloud_method(const EstimateOptions& options, ThreadPool& pool);

}  // namespace deeptail::cli
