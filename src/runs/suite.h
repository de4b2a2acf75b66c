// A suite: which estimates a run makes (docs/runs.md). TOML to values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "deeptail/methods.h"

namespace deeptail {

// A method with one choice of its settings: a row of the tables.
struct SuiteVariant {
  std::string label = {};  // "ga-amls", or "ga-amls/student_t/mala" where settings are swept
  Method method = {};
  bool is_called(std::string_view name) const { return name == label || name == method.name; }
};

// A token by its id or, where there is one, by its text.
struct SuiteToken {
  std::uint64_t id = 0;
  std::string text = {}, where = {};  // where: for messages
};

struct SuiteTargets {
  std::vector<SuiteToken> tokens = {};  // these; or, where there are none, those whose q lies in a band:
  double q_low = 1e-9, q_high = 1e-5;
  std::size_t count = 16;  // per pair of model and distribution; fewer where there are not as many
  std::uint64_t seed = 1;
  // A name in the folders called truth, or a path; {model} and {dist} stand for their names.
  std::string truth = "{model}-{dist}.json";
  bool truth_needed = true;  // false: what has no such file has no known truth
};

struct Suite {
  std::string name = {}, text = {}, sha256 = {};
  std::vector<std::string> models = {}, distributions = {}, profiles = {};
  SuiteTargets targets = {};
  std::vector<SuiteVariant> variants = {};
  std::size_t replicas = 1;
  std::uint64_t seed = 1;
};

// Throws InputError with `where`, line and key for anything that is not as it should be.
// Methods that know the device run there.
Suite parse_suite(std::string_view toml, const std::string& where, Device device = Device::kCpu);
Suite read_suite(const std::string& path, Device device = Device::kCpu);

}  // namespace deeptail
