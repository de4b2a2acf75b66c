// The methods by name, with settings as text: what the command line and the benchmark run alike. A method
// answers a Question; what it cannot answer it refuses in one sentence, before any work.
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
#include "deeptail/question.h"
#include "deeptail/watch.h"

namespace [[gnu::visibility("default")]] deeptail {

struct Setting {
  std::string key, value;
  std::string where;  // how messages begin: "--prior", "suites/quick.toml: line 12: prior"
};

// One of several questions.
struct MethodTask {
  Question question;
  std::uint64_t seed = 1;
};

// A method with its settings.
struct Method {
  const MethodRow* row = nullptr;
  std::string name = {};
  std::vector<Setting> given = {};  // that it was made with
  SettingValues values = {};        // of all its settings, in the row's order: as given, or their defaults
  // Fills in values that depend on the question; empty where none do.
  std::function<void(const Question&, SettingValues&)> settle = {};
  std::uint64_t calibration = 0;  // activations that it needs
  // What it needs of a question (why_not).
  bool needs_tables = false;      // a law of independent tokens
  bool needs_next_token = false;  // an event about the most likely next token
  bool one_token = false;         // and about one token only
  bool needs_pattern = false;     // an event about a pattern in a sampled continuation
  bool enumerates = false;        // where all inputs cost no more than its work, they are counted instead
  bool shares_draws = false;      // run_many answers all questions of one seed by the work that one takes
  Device device = Device::kCpu;
  // Memory beyond that of n activations of dimension d; empty for little.
  std::function<double(std::size_t n, std::size_t d)> bytes = {};
  std::string unit = {};  // of its work
  // Most of the work that it will do; 0 when it cannot tell.
  std::function<std::uint64_t(const Question&)> work = [](const Question&) { return std::uint64_t{0}; };
  std::function<Estimate(const Question&, std::uint64_t seed, ThreadPool&, const Watch&)> run = {};
  // Many questions about one model and law at once, where that is faster than one after the other; empty
  // where it is not.
  std::function<void(std::span<const MethodTask>, const Answers&, ThreadPool&, const Watch&)> run_many = {};

  bool needs_activations() const { return calibration > 0; }  // otherwise it runs the model itself
  bool takes(std::string_view key) const { return row != nullptr && row->setting(key) != nullptr; }
};

// Why the method cannot answer, in one sentence; empty where it can. Activations need not be there yet.
std::string why_not(const Method& method, const Question& question);
// Throws that sentence: a DeviceError where it is the device that is missing.
void check_can_answer(const Method& method, const Question& question);

// Throws InputError for a method or setting that there is not, or a value that does not fit.
// where: how the method was named, "suites/quick.toml: line 12: methods.method"; begins what is not about one
// setting alone.
Method make_method(const std::string& name, const std::vector<Setting>& settings,
                   std::string_view where = "");
std::vector<std::string> method_names();  // in the order of method_rows(), tokensplit first

// What capturing n activations costs.
Cost capture_cost(const ModelConfig& config, const InputLaw& law, std::uint64_t n, double seconds);

// Runs it, or throws why_not. Ties are settled beforehand; the estimate gets its provenance, its settings and
// the cost of the activations.
Estimate run_method(const Method& method, const Question& question, std::uint64_t seed, ThreadPool& pool,
                    const Watch& watch = {});
// The same with run_many, which the method must have.
void run_method_many(const Method& method, std::span<const MethodTask> tasks, const Answers& answers,
                     ThreadPool& pool, const Watch& watch = {});

}  // namespace deeptail
