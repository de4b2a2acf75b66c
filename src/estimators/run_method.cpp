// What every method's estimates have in common, alone or many at once.
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "core/json.h"
#include "deeptail/sampling.h"
#include "deeptail/temperatures.h"
#include "estimators/enumerate.h"
#include "estimators/method_list.h"
#include "estimators/ties.h"

namespace deeptail {

std::uint64_t take_calibration(SettingReader& s) {
  CaptureConfig config;
  s.take(kCalibration, config.count);
  config.validate();
  return config.count;
}

double temperature_of(double set, std::string_view method, const Question& question) {
  if (set > 0.0) return set;
  return shipped_temperature(method, question.provenance.model, question.provenance.dist).value_or(1.0);
}
std::function<void(const Question&, SettingValues&)> settle_temperature(double set, std::string_view method) {
  return [set, method](const Question& question, SettingValues& values) {
    set_value(values, kTemperature, temperature_of(set, method, question));
  };
}
void tell_temperature(Estimate& estimate, double temperature) {
  estimate.diagnostics.insert(estimate.diagnostics.begin(), {"temperature", temperature});
}

Cost capture_cost(const ModelConfig& config, const InputLaw& law, std::uint64_t n, double seconds) {
  return {.forward = n,
          .flops = static_cast<double>(n) * forward_flops(config, law.facts().max_length),
          .seconds = seconds};
}

namespace {

// The event as the method is asked about it, or the answer where that is known without it.
struct Settled {
  std::optional<NextToken> asked = {};  // where it differs
  std::optional<Estimate> known = {};
};

// Ties between tokens that always tie may decide it: methods on activations cannot see those.
Settled settle_ties(const Method& method, const Question& question, std::uint64_t seed) {
  if (!method.needs_activations()) return {};
  const Head& head = *question.head;
  const std::vector<TokenId> ids = without_ties(head, *question.next_token());
  const bool never = ids.empty(), always = ids.size() == head.d_vocab();
  if (!never && !always && method.one_token) return {};
  if (!never && !always) return {.asked = NextToken(Target(ids, head))};
  Estimate e{.method = method.name, .guarantee = Guarantee::kModelBased, .seed = seed};
  e.log_p = e.log_low = e.log_high = always ? 0.0 : -std::numeric_limits<double>::infinity();
  e.status = always ? Status::kOk : Status::kNotReachedUpperBound;
  e.warnings.emplace_back(always ? "all logits are the same, and ties go to the smallest id: always said"
                                 : "a smaller id has the same column of W_U, and ties go to it: never said");
  return {.known = std::move(e)};
}

// All inputs are counted where there are few.
Settled settle(const Method& method, const Question& question, std::uint64_t seed, ThreadPool& pool,
               const Watch& watch) {
  if (!method.enumerates) return settle_ties(method, question, seed);
  if (question.event->n_parts() > 0 || few_inputs(*question.law, method.work(question)) == 0) return {};
  return {.known = count_all_inputs(*question.model, *question.law, *question.event,
                                    {.method = method.name, .seed = seed}, pool, watch)};
}

void add_capture(Cost& cost, const Cost& capture) {
  cost.forward += capture.forward;
  cost.flops += capture.flops;
  cost.seconds += capture.seconds;
  if (capture.forward > 0)
    cost.forward_equivalents = cost.flops / capture.flops * static_cast<double>(capture.forward);
}

std::string law_json(const LawFacts& law) {
  return json_text(OrderedJson{
      {"name", law.name}, {"sha256", law.sha256}, {"max_length", law.max_length}, {"parts", law.n_parts}});
}

// What estimates of events about answers tell besides.
void tell_answers(Estimate& estimate, const Question& question) {
  const Event& event = *question.event;
  estimate.event_json = event.json();
  estimate.law_json = law_json(question.law->facts());
  const std::size_t middle = (question.law->facts().max_length + event.answer_length()) / 2;
  estimate.cost.tokens = estimate.cost.flops / decoding_flops(question.model->config(), middle, middle + 1);
  for (Trigger& trigger : estimate.triggers) trigger.said = event.answer_text(trigger.tokens, trigger.answer);
}

// What every estimate tells, whatever the method.
Estimate finished(Estimate estimate, const Method& method, const Question& question) {
  estimate.target = question.next_token() != nullptr ? question.next_token()->ids() : std::vector<TokenId>();
  estimate.event = question.event->text();
  estimate.provenance = question.provenance;
  const bool exact = estimate.guarantee == Guarantee::kExact;
  estimate.provenance.device = name_of(exact ? Device::kCpu : method.device);
  estimate.settings = method.values;
  if (!estimate.chosen.empty()) estimate.settings.emplace_back("chosen", estimate.chosen);
  if (question.event->answer_length() > 0 || !question.event->json().empty())
    tell_answers(estimate, question);
  if (method.settle) method.settle(question, estimate.settings);
  if (!exact && !std::isinf(estimate.log_p) && estimate.log_p < std::log(kSmallestChecked))
    estimate.warnings.push_back(fmt::format(
        "p is below {:.0e}: nothing so small has been checked here against a count or a closed form",
        kSmallestChecked));
  if (!method.needs_activations()) return estimate;
  set_value(estimate.settings, kCalibration, static_cast<std::uint64_t>(question.activations->n));
  add_capture(estimate.cost, question.capture_cost);
  return estimate;
}

}  // namespace

Estimate run_method(const Method& method, const Question& question, std::uint64_t seed, ThreadPool& pool,
                    const Watch& watch) {
  check_can_answer(method, question);
  if (method.needs_activations() && question.activations == nullptr)
    throw InputError("{} looks at activations, of which the question has none: capture {} of them first",
                     method.name, method.calibration);
  Settled settled = settle(method, question, seed, pool, watch);
  if (settled.known) return finished(*std::move(settled.known), method, question);
  const Question asked = settled.asked ? question.about(*settled.asked) : question;
  return finished(method.run(asked, seed, pool, watch), method, question);
}

void run_method_many(const Method& method, std::span<const MethodTask> tasks, const Answers& answers,
                     ThreadPool& pool, const Watch& watch) {
  const auto tell = [&](std::size_t task, Estimate estimate) {
    answers.on_estimate(task, finished(std::move(estimate), method, tasks[task].question));
  };
  std::deque<NextToken> events;  // that questions refer to
  std::vector<MethodTask> asked;
  std::vector<std::size_t> place;  // [asked]: of each among the tasks
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto& [question, seed] = tasks[i];
    try {
      check_can_answer(method, question);
    } catch (const DeviceError&) {
      throw;  // nobody would be answered
    } catch (const InputError& e) {
      if (!answers.on_refusal) throw;
      answers.on_refusal(i, e.what());
      continue;
    }
    Settled settled = settle(method, question, seed, pool, watch);
    if (settled.known) {
      tell(i, *std::move(settled.known));
      continue;
    }
    if (settled.asked) events.push_back(*std::move(settled.asked));
    asked.push_back({settled.asked ? question.about(events.back()) : question, seed});
    place.push_back(i);
  }
  Answers told{.on_estimate = [&](std::size_t k, Estimate e) { tell(place[k], std::move(e)); }};
  if (answers.on_refusal)
    told.on_refusal = [&](std::size_t k, const std::string& why) { answers.on_refusal(place[k], why); };
  if (!asked.empty()) method.run_many(asked, told, pool, watch);
}

}  // namespace deeptail
