// The flags of deeptail estimate.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/event_flags.h"
#include "deeptail/methods.h"

namespace deeptail::cli {

// Every token at once.
struct AllOptions {
  bool all = false;
  std::string out;
};

// What is not given is left to the method.
struct EstimateOptions {
  std::string model, targets_file, method, activations, unembed;  // method "": the default for the event
  PromptOptions prompts;
  EventOptions event;
  AllOptions all;
  std::vector<std::string> targets;
  // By setting_rows(); empty: not given.
  std::vector<std::string> settings = std::vector<std::string>(setting_rows().size());
  std::uint64_t seed = 1;
  std::size_t threads = 0;
  std::optional<std::uint64_t> calibration_seed;
  bool json = false, quiet = false;
};

// In groups: the question, the work, each method's settings, the output.
void add_estimate_flags(CLI::App& command, EstimateOptions& options);

// The method with those of the flags that are its own. A flag that makes no sense is told whatever the
// method.
Method checked_method(const EstimateOptions& o);
// tokensplit for the argmax of the next token, all-tokens for that of all, auto for what is sampled.
std::string method_name(const EstimateOptions& o);
// Flags that the method has no use for become warnings.
void warn_of_unused_flags(const EstimateOptions& o, const Method& method, Estimate& estimate);

}  // namespace deeptail::cli
