// What every method's estimates have in common, alone or many at once.
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "deeptail/temperatures.h"
#include "estimators/method_list.h"
#include "estimators/ties.h"

namespace deeptail {

std::uint64_t take_calibration(SettingReader& s) {
  CaptureConfig config;
  s.take(kCalibration, config.count);
  config.validate();
  return config.count;
}

double temperature_of(double set, std::string_view method, const MethodInput& in) {
  if (set > 0.0) return set;
  return shipped_temperature(method, in.provenance.model, in.provenance.dist).value_or(1.0);
}
std::function<void(const MethodInput&, SettingValues&)> settle_temperature(double set,
                                                                           std::string_view method) {
  return [set, method](const MethodInput& in, SettingValues& values) {
    set_value(values, kTemperature, temperature_of(set, method, in));
  };
}
void tell_temperature(Estimate& estimate, double temperature) {
  estimate.diagnostics.insert(estimate.diagnostics.begin(), {"temperature", temperature});
}

Cost capture_cost(const ModelConfig& config, const Distribution& dist, std::uint64_t n, double seconds) {
  return {.forward = n,
          .flops = static_cast<double>(n) * forward_flops(config, dist.length()),
          .seconds = seconds};
}

namespace {

// A question as the method is asked it, or its answer where ties between tokens that always tie decide it:
// methods on activations cannot see those.
struct Settled {
  std::optional<Target> asked;
  Estimate known = {};
};

Settled settle_ties(const Method& method, const MethodInput& input, const MethodTask& task) {
  if (!method.needs_activations()) return {.asked = task.target};
  const std::vector<TokenId> ids = without_ties(*input.head, task.target);
  const bool never = ids.empty(), always = ids.size() == input.head->d_vocab();
  if (!never && !always) return {.asked = method.one_token ? task.target : Target(ids, *input.head)};
  Estimate e{.method = method.name, .guarantee = Guarantee::kModelBased, .seed = task.seed};
  e.log_p = e.log_low = e.log_high = always ? 0.0 : -std::numeric_limits<double>::infinity();
  e.status = always ? Status::kOk : Status::kNotReachedUpperBound;
  e.warnings.emplace_back(always ? "all logits are the same, and ties go to the smallest id: always said"
                                 : "a smaller id has the same column of W_U, and ties go to it: never said");
  return {.asked = std::nullopt, .known = std::move(e)};
}

void add_capture(Cost& cost, const Cost& capture) {
  cost.forward += capture.forward;
  cost.flops += capture.flops;
  cost.seconds += capture.seconds;
  if (capture.forward > 0)
    cost.forward_equivalents = cost.flops / capture.flops * static_cast<double>(capture.forward);
}

// What every estimate tells, whatever the method.
Estimate finished(Estimate estimate, const Method& method, const MethodInput& input, const Target& target) {
  estimate.target = target.ids();
  estimate.provenance = input.provenance;
  estimate.provenance.device = name_of(method.device);
  estimate.settings = method.values;
  if (method.settle) method.settle(input, estimate.settings);
  if (!std::isinf(estimate.log_p) && estimate.log_p < std::log(kSmallestChecked))
    estimate.warnings.push_back(fmt::format(
        "p is below {:.0e}: nothing so small has been checked here against a count or a closed form",
        kSmallestChecked));
  if (!method.needs_activations()) return estimate;
  set_value(estimate.settings, kCalibration, static_cast<std::uint64_t>(input.activations->n));
  add_capture(estimate.cost, input.capture_cost);
  return estimate;
}

}  // namespace

Estimate run_method(const Method& method, const MethodInput& input, const Target& target, std::uint64_t seed,
                    ThreadPool& pool, const Watch& watch) {
  Settled question = settle_ties(method, input, {target, seed});
  return finished(
      question.asked ? method.run(input, *question.asked, seed, pool, watch) : std::move(question.known),
      method, input, target);
}

void run_method_many(const Method& method, const MethodInput& input, std::span<const MethodTask> tasks,
                     const Answers& answers, const Watch& watch) {
  const auto tell = [&](std::size_t task, Estimate estimate) {
    answers.on_estimate(task, finished(std::move(estimate), method, input, tasks[task].target));
  };
  std::vector<MethodTask> asked;
  std::vector<std::size_t> place;  // [asked]: of each among the tasks
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    Settled question = settle_ties(method, input, tasks[i]);
    if (!question.asked) {
      tell(i, std::move(question.known));
      continue;
    }
    asked.push_back({*std::move(question.asked), tasks[i].seed});
    place.push_back(i);
  }
  Answers told{.on_estimate = [&](std::size_t k, Estimate e) { tell(place[k], std::move(e)); }};
  if (answers.on_refusal)
    told.on_refusal = [&](std::size_t k, const std::string& why) { answers.on_refusal(place[k], why); };
  if (!asked.empty()) method.run_many(input, asked, told, watch);
}

}  // namespace deeptail
