// The flags of deeptail estimate.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "deeptail/methods.h"

namespace deeptail::cli {

// What is not given is left to the method.
struct EstimateOptions {
  std::string model, dist, targets_file, method = "tokensplit", budget, device = "cpu";
  std::vector<std::string> targets;
  std::string activations, unembed, calibration, prior, kernel, start, normaliser, burn_in;
  std::uint64_t seed = 1;
  std::size_t threads = 0;
  std::optional<std::uint64_t> calibration_seed;
  std::optional<std::size_t> replicas, particles, moves, first_draw, chains;
  std::optional<double> rel_error, survive_fraction, forgotten, taper, temperature;
  bool json = false, quiet = false;
};

// In groups: the question, the work, each method's settings, the output.
void add_estimate_flags(CLI::App& command, EstimateOptions& options);

// The method with those of the flags that are its own.
Method method_of(const EstimateOptions& o, const std::string& name);

// A flag that makes no sense is told whatever the method and before any work.
void check_flags(const EstimateOptions& o);
// Flags that the method has no use for become warnings.
void warn_of_unused_flags(const EstimateOptions& o, const Method& method, Estimate& estimate);

}  // namespace deeptail::cli
