#include "cli/event_flags.h"

#include <cmath>
#include <cstdlib>

#include "cli/parse.h"
#include "core/screen_text.h"
#include "deeptail/continuation.h"
#include "events/scored_event.h"

namespace deeptail::cli {

namespace {

constexpr const char* kGroup = "What is said next";

double number_of(const std::string& text, const char* flag, double low, double high, const char* expected) {
  const std::string mistake = number_mistake(text);
  const double value = mistake.empty() ? std::strtod(text.c_str(), nullptr) : 0.0;
  if (!mistake.empty() || !(value > low && value <= high))
    throw InputError("{}: expected {}, found {}", flag, expected, quoted_text(text));
  return value;
}

std::size_t count_of(const std::string& text, const char* flag, std::size_t most) {
  const std::uint64_t value = parse_count(text, flag);
  if (value > most)
    throw InputError("{}: expected a whole number from 1 to {}, found {}", flag, most, quoted_text(text));
  return static_cast<std::size_t>(value);
}

ScoreSettings score_settings(const EventOptions& o) {
  ScoreSettings out;
  if (!o.judge_timeout.empty())
    out.judge_timeout =
        number_of(o.judge_timeout, "--judge-timeout", 0.0, 1e9, "seconds, a number above 0 and at most 1e9");
  return out;
}

}  // namespace

std::vector<std::string_view> EventOptions::events() const {
  std::vector<std::string_view> given;
  if (starts_with) given.emplace_back("--starts-with");
  if (contains) given.emplace_back("--contains");
  if (matches) given.emplace_back("--matches");
  if (tokens_any) given.emplace_back("--tokens-any");
  if (judge) given.emplace_back("--judge");
  if (probe) given.emplace_back("--probe");
  if (sampled) given.emplace_back("--target with --sampled");
  return given;
}

bool EventOptions::about_continuation() const { return !events().empty(); }

std::vector<std::string> EventOptions::unused() const {
  const bool next_token = !about_continuation();
  std::vector<std::string> out;
  const auto tell = [&](const char* flag, const std::string& value, bool used) {
    if (!value.empty() && !used)
      out.push_back(fmt::format("{} has no effect on {}", flag,
                                next_token ? "the most likely next token" : events().front()));
  };
  tell("--within", within, !next_token && !sampled);
  tell("--temperature", temperature, !next_token);
  tell("--top-k", top_k, !next_token);
  tell("--top-p", top_p, !next_token);
  tell("--stop", stop, !next_token);
  tell("--threshold", threshold, judge || probe);
  tell("--judge-timeout", judge_timeout, judge.has_value());
  return out;
}

void add_event_flags(CLI::App& command, EventOptions& o, bool temperature) {
  command.add_option("--starts-with", o.starts_with, "The continuation starts with this text")->group(kGroup);
  command.add_option("--contains", o.contains, "It contains this text, however it is cut into tokens")
      ->group(kGroup);
  command.add_option("--matches", o.matches, "A regular expression matches in it")->group(kGroup);
  command.add_option("--tokens-any", o.tokens_any, "It has one of these tokens: ids, separated by commas")
      ->group(kGroup);
  command
      .add_option(
          "--judge", o.judge,
          "A program gives it at least --threshold: it reads {\"prompt\", \"continuation\"} a line and "
          "writes a number a line")
      ->group(kGroup);
  command.add_option("--probe", o.probe, "A direction on an activation is at least --threshold: a JSON file")
      ->group(kGroup);
  command.add_option("--threshold", o.threshold, "Of --judge and --probe")
      ->type_name("NUMBER")
      ->group(kGroup);
  command
      .add_option("--judge-timeout", o.judge_timeout,
                  "Seconds until a silent judge is given up (default 120)")
      ->type_name("SECONDS")
      ->group(kGroup);
  command.add_option("--within", o.within, "Tokens of the continuation")->type_name("COUNT")->group(kGroup);
  command.add_flag("--sampled", o.sampled, "With --target: the next token is drawn, not the most likely one")
      ->group(kGroup);
  add_sampling_flags(command, o, temperature);
}

void add_sampling_flags(CLI::App& command, EventOptions& o, bool temperature) {
  command.add_flag("--greedy", o.greedy, "The most likely token at every step, instead of a drawn one")
      ->group(kGroup);
  if (temperature)
    command.add_option("--temperature", o.temperature, "Of sampling (default 1)")
        ->type_name("NUMBER")
        ->group(kGroup);
  command.add_option("--top-k", o.top_k, "Draw from the k most likely tokens")
      ->type_name("COUNT")
      ->group(kGroup);
  command
      .add_option("--top-p", o.top_p,
                  "Draw from the most likely tokens that have this much of the probability")
      ->type_name("NUMBER")
      ->group(kGroup);
  command
      .add_option("--stop", o.stop,
                  "The token that ends a text: its text, eos, or none (default: eos where the model's files "
                  "name one)")
      ->group(kGroup);
}

void add_prompt_flags(CLI::App& command, PromptOptions& o) {
  constexpr const char* kQuestion = "The question";
  command.add_option("--prompt", o.prompt, "Instead of --dist: one prompt, as text; \"\": the model begins")
      ->type_name("PROMPT")
      ->group(kQuestion);
  command
      .add_option("--prompts", o.prompts,
                  "Instead of --dist: a file of prompts, one a line, or JSONL with \"prompt\" and perhaps "
                  "\"weight\"")
      ->group(kQuestion);
}

SamplingConfig sampling_of(const EventOptions& o) {
  SamplingConfig sampling{.greedy = o.greedy};
  if (!o.temperature.empty())
    sampling.temperature =
        number_of(o.temperature, "--temperature", 0.0, 1e6, "a number above 0 and at most 1e6");
  if (!o.top_k.empty()) sampling.top_k = count_of(o.top_k, "--top-k", kMostTokens);
  if (!o.top_p.empty())
    sampling.top_p = number_of(o.top_p, "--top-p", 0.0, 1.0, "a number above 0 and at most 1");
  return sampling;
}

SamplingConfig deployed_sampling(const EventOptions& o, const LoadedModel& model) {
  SamplingConfig sampling = sampling_of(o);
  sampling.stop = stop_tokens(o.stop, model);
  sampling.validate(model.config().d_vocab);
  return sampling;
}

std::vector<EventSpec> specs_of(const EventOptions& o) {
  std::vector<EventSpec> out;
  const auto add = [&](EventKind kind, const std::optional<std::string>& value, const char* flag) {
    if (!value) return;
    EventSpec& spec = out.emplace_back(EventSpec{.kind = kind, .value = *value});
    if (value->empty()) throw InputError("{}: expected text that is not empty", flag);
    if (kind == EventKind::kTokensAny) spec.ids = parse_ids(spec.value, flag), spec.value.clear();
    if (!o.within.empty())
      spec.within = count_of(o.within, "--within", kMostTokens);
    else if (kind != EventKind::kProbe && kind != EventKind::kStartsWith)
      throw InputError("{}: expected --within, the number of tokens of the continuation", flag);
    if (!spec.has_threshold()) return;
    if (o.threshold.empty()) throw InputError("{}: expected --threshold", flag);
    spec.threshold = number_of(o.threshold, "--threshold", -1e300, 1e300, "a finite number");
  };
  add(EventKind::kStartsWith, o.starts_with, "--starts-with");
  add(EventKind::kContains, o.contains, "--contains");
  add(EventKind::kMatches, o.matches, "--matches");
  add(EventKind::kTokensAny, o.tokens_any, "--tokens-any");
  add(EventKind::kJudge, o.judge, "--judge");
  add(EventKind::kProbe, o.probe, "--probe");
  return out;
}

std::unique_ptr<Event> make_event(const EventOptions& o, const LoadedModel& model,
                                  std::span<const TokenId> targets) {
  const std::vector<std::string_view> given = o.events();
  if (given.size() != 1)
    throw InputError("expected one event, found {}: ask about each alone", fmt::join(given, ", "));
  if (o.sampled && targets.empty()) throw InputError("--sampled: expected --target, the token that is drawn");
  if (o.sampled && o.greedy) throw InputError("--sampled and --greedy: expected one of them");
  if (o.within.empty() && (o.contains || o.matches || o.tokens_any || o.judge))
    throw InputError("{}: expected --within, the number of tokens of the continuation", given.front());
  const SamplingConfig sampling = deployed_sampling(o, model);
  if (o.sampled)
    return make_text_event({.kind = EventKind::kTarget, .ids = {targets.begin(), targets.end()}}, sampling,
                           model);
  const EventSpec spec = specs_of(o).front();
  if (spec.has_threshold()) return make_scored_event(spec, sampling, score_settings(o), model);
  return make_text_event(spec, sampling, model);
}

std::unique_ptr<InputLaw> make_law(const PromptOptions& o, const LoadedModel& model) {
  const int given = (o.prompt ? 1 : 0) + (o.prompts.empty() ? 0 : 1) + (o.dist.empty() ? 0 : 1);
  if (given != 1)
    throw InputError("expected one of --dist, --prompt and --prompts, found {}",
                     given == 0 ? "none" : "more");
  if (!o.dist.empty()) return load_law(o.dist, model);
  const LawSubject subject = law_subject(model);
  return o.prompt ? law_of_prompt(*o.prompt, subject) : law_of_prompts(o.prompts, subject);
}

}  // namespace deeptail::cli
