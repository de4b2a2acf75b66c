// The methods by name, with settings as text: what the command line and the benchmark run alike.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "deeptail/device.h"
#include "deeptail/estimators.h"
#include "deeptail/ga_amls.h"

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
};

// One of several targets.
struct MethodTask {
  Target target;
  std::uint64_t seed = 1;
};

struct MethodHooks {
  KeepGoing keep_going = {};     // told the work done, which ends at Method::work
  GaKeepGoing after_level = {};  // of ga-amls, which has no fixed amount of work (also within levels)
};

// A method with its settings.
struct Method {
  std::string name = {};
  std::vector<std::string> settings = {};  // keys that it knows
  std::vector<Setting> given = {};         // that it was made with
  SettingValues values = {};               // the same with what they were set to, or their defaults
  // Fills in values that depend on the input; empty where none do.
  std::function<void(const MethodInput&, SettingValues&)> settle = {};
  std::uint64_t calibration = 0;  // activations that it needs; 0: none, it runs the model itself
  std::size_t replicas = 1;       // that after_level counts
  bool one_token = false;         // takes no sets of targets
  Device device = Device::kCpu;
  // Memory beyond that of n activations of dimension d; empty for little.
  std::function<double(std::size_t n, std::size_t d)> bytes = {};
  std::string unit = {};  // of its work
  // Most of the work that it will do; 0 when it cannot tell.
  std::function<std::uint64_t(const ModelConfig&, const Distribution&)> work =
      [](const ModelConfig&, const Distribution&) { return std::uint64_t{0}; };
  std::function<Estimate(const MethodInput&, const Target&, std::uint64_t seed, ThreadPool&,
                         const MethodHooks&)>
      run = {};
  // Many targets at once, where that is faster than one after the other; empty where it is not.
  std::function<void(const MethodInput&, std::span<const MethodTask>, const ManyHooks&)> run_many = {};
};

// Throws InputError for a method or setting that there is not, or a value that does not fit.
Method make_method(const std::string& name, const std::vector<Setting>& settings);
std::vector<std::string> method_names();  // tokensplit first

// What capturing n activations costs.
Cost capture_cost(const ModelConfig& config, const Distribution& dist, std::uint64_t n, double seconds);

// Runs it: its estimate with provenance, and the cost of the activations added.
Estimate run_method(const Method& method, const MethodInput& input, const Target& target, std::uint64_t seed,
                    ThreadPool& pool, const MethodHooks& hooks = {});
// Likewise with run_many, which the method must have.
void run_method_many(const Method& method, const MethodInput& input, std::span<const MethodTask> tasks,
                     const ManyHooks& hooks);

}  // namespace deeptail
