// The methods by name, with settings as text: what the command line and the benchmark run alike.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/device.h"
#include "deeptail/estimators.h"
#include "deeptail/method_rows.h"
#include "deeptail/watch.h"

namespace [[gnu::visibility("default")]] deeptail {

struct Setting {
  std::string key, value;
  std::string where;  // how messages begin: "--prior", "suites/quick.toml: line 12: prior"
};

// What a method works on.
struct MethodInput {
  const Transformer* model = nullptr;  // null for a user's file of activations, like dist
  const Distribution* dist = nullptr;
  const Head* head = nullptr;
  const Activations* activations = nullptr;  // null for methods that need none
  Cost capture_cost = {};                    // of making the activations
  Provenance provenance = {};
  double likely_log_p = -16.0;  // where the truth is known, its log: progress of splitting is measured by it
};

// One of several targets.
struct MethodTask {
  Target target;
  std::uint64_t seed = 1;
};

// A method with its settings.
struct Method {
  const MethodRow* row = nullptr;
  std::string name = {};
  std::vector<Setting> given = {};  // that it was made with
  SettingValues values = {};        // of all its settings, in the row's order: as given, or their defaults
  // Fills in values that depend on the input; empty where none do.
  std::function<void(const MethodInput&, SettingValues&)> settle = {};
  std::uint64_t calibration = 0;  // activations that it needs
  bool one_token = false;         // takes no sets of targets
  Device device = Device::kCpu;
  // Memory beyond that of n activations of dimension d; empty for little.
  std::function<double(std::size_t n, std::size_t d)> bytes = {};
  std::string unit = {};  // of its work
  // Most of the work that it will do; 0 when it cannot tell.
  std::function<std::uint64_t(const ModelConfig&, const Distribution&)> work =
      [](const ModelConfig&, const Distribution&) { return std::uint64_t{0}; };
  std::function<Estimate(const MethodInput&, const Target&, std::uint64_t seed, ThreadPool&, const Watch&)>
      run = {};
  // Many targets at once, where that is faster than one after the other; empty where it is not.
  std::function<void(const MethodInput&, std::span<const MethodTask>, const Answers&, const Watch&)>
      run_many = {};

  bool needs_activations() const { return calibration > 0; }  // otherwise it runs the model itself
  bool takes(std::string_view key) const { return row != nullptr && row->setting(key) != nullptr; }
};

// What is known of a question before anything is loaded.
struct QuestionKind {
  bool has_model = true;     // false: a user's file of activations
  std::size_t n_tokens = 1;  // of the target
};
// Why the method cannot answer, in one sentence; empty where it can.
std::string why_not(const Method& method, const QuestionKind& question);

// Throws InputError for a method or setting that there is not, or a value that does not fit.
// where: how the method was named, "suites/quick.toml: line 12: methods.method"; begins what is not about one
// setting alone.
Method make_method(const std::string& name, const std::vector<Setting>& settings,
                   std::string_view where = "");
std::vector<std::string> method_names();  // in the order of method_rows(), tokensplit first

// What capturing n activations costs.
Cost capture_cost(const ModelConfig& config, const Distribution& dist, std::uint64_t n, double seconds);

// Runs it. Ties are settled beforehand; the estimate gets its provenance, its settings and the cost of the
// activations.
Estimate run_method(const Method& method, const MethodInput& input, const Target& target, std::uint64_t seed,
                    ThreadPool& pool, const Watch& watch = {});
// The same with run_many, which the method must have.
void run_method_many(const Method& method, const MethodInput& input, std::span<const MethodTask> tasks,
                     const Answers& answers, const Watch& watch = {});

}  // namespace deeptail
