// dt_call: the table of its functions, and how they read their arguments.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "c_api/calls.h"
#include "core/nearest.h"

namespace deeptail::c_api {

namespace {

struct CallRow {
  std::string_view name;
  CallFunction function;
};
constexpr std::array kCalls = {CallRow{"list", list_things},
                               CallRow{"fetch", fetch_model},
                               CallRow{"spb_alpha", spb_alpha},
                               CallRow{"spb_epsilon", spb_epsilon},
                               CallRow{"calibrate", calibrate_pairs},
                               CallRow{"noise_floor", noise_floor_of},
                               CallRow{"paired_bootstrap", bootstrap_pairs},
                               CallRow{"truth", count_truth_file},
                               CallRow{"truth_read", read_truth_file},
                               CallRow{"truth_compare", compare_truth_files},
                               CallRow{"truth_merge", merge_truth_files},
                               CallRow{"bench", run_bench},
                               CallRow{"run_read", read_run_folder},
                               CallRow{"report", write_report},
                               CallRow{"pattern", pattern_automaton},
                               CallRow{"selftest", run_selftest}};

CallFunction find_call(std::string_view name) {
  std::vector<std::string> known;
  for (const CallRow& row : kCalls) {
    if (row.name == name) return row.function;
    known.emplace_back(row.name);
  }
  throw InputError("call: there is no \"{}\"{}", printable(name), did_you_mean(name, known));
}

}  // namespace

std::string text_or(const JsonNode& node, const char* key, std::string otherwise) {
  return node.has(key) ? node.at(key).text() : std::move(otherwise);
}

double number_or(const JsonNode& node, const char* key, double otherwise) {
  return node.has(key) ? node.at(key).number() : otherwise;
}

std::uint64_t count_or(const JsonNode& node, const char* key, std::uint64_t otherwise) {
  return node.has(key) ? node.at(key).count(0, std::numeric_limits<std::uint64_t>::max()) : otherwise;
}

std::vector<std::string> texts_or_none(const JsonNode& node, const char* key) {
  std::vector<std::string> out;
  if (!node.has(key)) return out;
  for (const JsonNode& text : node.at(key).elements()) out.push_back(text.text());
  return out;
}

std::size_t threads_of(const JsonNode& node) {
  return node.has("threads") ? node.at("threads").count(0, ThreadPool::kMostThreads) : 0;
}

void expect_keys(const JsonNode& node, std::initializer_list<std::string_view> keys) {
  node.expect_object();
  for (const auto& [key, value] : node.value().items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      throw InputError("unknown argument {}; expected {}", printable(key), fmt::join(keys, ", "));
}

OrderedJson json_of(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

}  // namespace deeptail::c_api

using namespace deeptail;
using namespace deeptail::c_api;

extern "C" dt_status dt_call(const char* what, const char* arguments, const dt_hooks* hooks, dt_text* out) {
  return guarded([&] {
    const std::string_view name = given_text(what, "call");
    const CallFunction function = find_call(name);
    const Json document = parse_json(arguments == nullptr ? "{}" : arguments, name);
    OrderedJson result;
    Caller caller(hooks);
    caller.run([&](const Watch& watch) { result = function(JsonNode(document, name), watch); });
    give_text(json_text(result), out);
  });
}
