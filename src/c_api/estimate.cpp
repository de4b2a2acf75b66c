// dt_estimate: what `deeptail estimate --json` answers.
#include <algorithm>

#include "c_api/asked.h"
#include "c_api/caller.h"
#include "core/memory.h"
#include "core/stopwatch.h"
#include "deeptail/activations.h"

namespace deeptail::c_api {

namespace {

// The lines of all answers, in the order of the questions.
class Lines {
 public:
  Lines(const dt_question& question, std::size_t n, Caller& caller)
      : tokenizer_(tokenizer_of(question)), caller_(caller), lines_(n) {}
  void take(std::size_t i, Estimate estimate) {
    lines_[i] = estimate_line(std::move(estimate), tokenizer_);
    caller_.tell_result(i, lines_[i]);
  }
  // Those that there are.
  std::string text() const {
    std::string out;
    for (const std::string& line : lines_)
      if (!line.empty()) out += line + "\n";
    return out;
  }

 private:
  const std::optional<NamedTokenizer>& tokenizer_;
  Caller& caller_;
  std::vector<std::string> lines_;
};

// Progress of one question as that of all.
Watch nth_of(std::size_t i, std::size_t n, const Watch& watch) {
  return [i, n, &watch](const Progress& p) {
    Progress all = p;
    all.share = (static_cast<double>(i) + std::min(1.0, p.share)) / static_cast<double>(n);
    all.total = p.total * n;
    all.done = p.total * i + p.done;
    return watch(all);
  };
}

struct Asked {
  AskedSettings settings;
  Method method;
  std::vector<Question> questions = {};
};

void answer(const Asked& asked, Caller& caller, Lines& lines, ThreadPool& pool, const Watch& watch) {
  const std::size_t n = asked.questions.size();
  const auto take = [&](std::size_t i, Estimate estimate) {
    asked.settings.warn_of_unused(asked.method, estimate);
    lines.take(i, std::move(estimate));
  };
  if (asked.method.run_many && n > 1) {
    std::vector<MethodTask> tasks;
    for (const Question& question : asked.questions) tasks.push_back({question, asked.settings.seed});
    run_method_many(asked.method, tasks, {.on_estimate = take}, pool, watch);
    return;
  }
  for (std::size_t i = 0; i < n && !(caller.stopped() && i > 0); ++i)
    take(i, run_method(asked.method, asked.questions[i], asked.settings.seed, pool, nth_of(i, n, watch)));
}

void check_has_model(const dt_question& q, const Method& method) {
  if (q.model != nullptr && q.law != nullptr) return;
  throw InputError("{} runs the model on its inputs: expected a model and a law", method.name);
}

// Activations that the caller brought, read where they are.
Activations brought(const dt_question& q) {
  Activations out{.n = q.n_activations, .d_model = q.d_activations};
  out.borrowed = {q.activations, q.n_activations * q.d_activations};
  if (q.last_tokens != nullptr) out.last_tokens.assign(q.last_tokens, q.last_tokens + q.n_activations);
  return out;
}

struct Cloud {
  Activations activations;
  Cost cost = {};
  Provenance provenance = {};
};

Cloud make_cloud(const dt_question& q, const Asked& asked, ThreadPool& pool, const Watch& watch) {
  if (q.activations != nullptr) {
    Cloud out{brought(q)};
    out.provenance = {.model = asked.settings.model_name, .dist = asked.settings.dist_name};
    check_activations(out.activations, head_of(q).d_model(), "activations");
    return out;
  }
  if (q.model == nullptr || q.law == nullptr)
    throw InputError("{}: expected a model and a law, or activations and a head", asked.method.name);
  const LoadedModel& model = q.model->loaded;
  const InputLaw& law = *q.law->law;
  const std::size_t n = asked.method.calibration, d = model.config().d_model;
  check_memory(fmt::format("calibration {}{}", n, asked.method.bytes ? " and particles" : ""),
               2.0 * capture_bytes(n, d) + (asked.method.bytes ? asked.method.bytes(n, d) : 0.0),
               "take fewer activations or particles");
  const Stopwatch stopwatch;
  const CaptureConfig config{.count = n,
                             .seed = asked.settings.calibration_seed.value_or(asked.settings.seed)};
  Cloud out{capture(model.transformer, law, config, pool, watch)};
  out.provenance = provenance_of(model, law);
  return out.cost = capture_cost(model.config(), law, out.activations.n, stopwatch.seconds()), std::move(out);
}

void ask_cloud(const dt_question& q, const Events& events, Asked& asked, Caller& caller, Lines& lines,
               ThreadPool& pool, const Watch& watch) {
  const Activations none;
  for (const auto& event : events) check_can_answer(asked.method, {head_of(q), none, *event});
  const Cloud cloud = make_cloud(q, asked, pool, watch);
  if (caller.stopped()) throw StoppedEarly();
  check_activations(cloud.activations, head_of(q).d_model(), "activations");
  for (const auto& event : events) {
    Question question(head_of(q), cloud.activations, *event);
    question.capture_cost = cloud.cost;
    question.provenance = cloud.provenance;
    check_can_answer(asked.method, question);
    asked.questions.push_back(std::move(question));
  }
  answer(asked, caller, lines, pool, watch);
}

std::string estimate(const dt_question& q, std::string_view settings, const dt_hooks* hooks) {
  Asked asked{.settings = read_settings(settings), .method = {}};
  const Events events = read_events(q);
  asked.method = asked.settings.make(events);
  Caller caller(hooks);
  Lines lines(q, events.size(), caller);
  caller.run([&](const Watch& watch) {
    ThreadPool pool(asked.settings.threads);
    if (asked.method.needs_activations()) return ask_cloud(q, events, asked, caller, lines, pool, watch);
    check_has_model(q, asked.method);
    for (const auto& event : events) {
      asked.questions.emplace_back(q.model->loaded, *q.law->law, *event);
      check_can_answer(asked.method, asked.questions.back());
    }
    answer(asked, caller, lines, pool, watch);
  });
  std::string out = lines.text();
  if (out.empty()) throw StoppedEarly();
  return out;
}

void event_scores(const dt_question& q, TokenBatch batch, std::size_t threads, std::span<double> out) {
  require(q.model, "model");
  require(q.law, "law");
  const Events events = read_events(q);
  if (events.size() != 1) throw InputError("events: expected one, found {}", events.size());
  if (events[0]->n_parts() > 0)
    throw InputError("events: the answer is sampled, so tokens alone have no score");
  check_tokens(q.model->loaded.config(), batch);
  ThreadPool pool(threads);
  const auto scorer = events[0]->scorer(q.model->loaded.transformer, *q.law->law, {}, pool);
  scorer->scores({batch}, out);
}

}  // namespace

}  // namespace deeptail::c_api

using namespace deeptail;
using namespace deeptail::c_api;

extern "C" {

dt_status dt_estimate(const dt_question* question, const char* settings, const dt_hooks* hooks,
                      dt_text* out) {
  return guarded([&] {
    require(question, "question");
    give_text(estimate(sized_copy(question), settings == nullptr ? "" : settings, hooks), out);
  });
}

dt_status dt_event_scores(const dt_question* question, const int32_t* tokens, const uint32_t* lengths,
                          size_t n, size_t length, size_t threads, double* out) {
  return guarded([&] {
    require(question, "question");
    TokenBatch batch{{tokens, n * length}, length, {}};
    if (lengths != nullptr) batch.lengths = {lengths, n};
    event_scores(sized_copy(question), batch, threads, {out, n});
  });
}

}  // extern "C"
