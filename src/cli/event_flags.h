// Flags that say what may follow which prompts: of every command that asks about sampled texts.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deeptail/event.h"
#include "deeptail/law.h"
#include "deeptail/load.h"
#include "deeptail/sampling.h"
#include "events/event_spec.h"

namespace deeptail::cli {

// As given; what is not given has no value.
struct EventOptions {
  std::optional<std::string> starts_with, contains, matches, tokens_any, judge, probe;
  std::string within, temperature, top_k, top_p, threshold, judge_timeout;  // numbers as text; "": not given
  std::string stop;
  bool greedy = false, sampled = false;

  // Is the question about a continuation? Otherwise it is the argmax of the next token.
  bool about_continuation() const;
  // The flags that say which event it is: "--contains".
  std::vector<std::string_view> events() const;
  // Sentences about flags that were given and say nothing about the question: "--top-k has no effect on ..".
  std::vector<std::string> unused() const;
};
struct PromptOptions {
  std::optional<std::string> prompt;
  std::string prompts, dist;
};

// temperature: whether the command has no --temperature of its own.
void add_event_flags(CLI::App& command, EventOptions& o, bool temperature);
void add_sampling_flags(CLI::App& command, EventOptions& o,
                        bool temperature);                   // those of them that say how it is drawn
void add_prompt_flags(CLI::App& command, PromptOptions& o);  // --prompt and --prompts

// How continuations are drawn; numbers that make no sense are told, by their flags.
SamplingConfig sampling_of(const EventOptions& o);
// The same with the tokens that end a text.
SamplingConfig deployed_sampling(const EventOptions& o, const LoadedModel& model);
// The events of the flags, as objects of files. Throws InputError where a flag of theirs is missing.
std::vector<EventSpec> specs_of(const EventOptions& o);

// The event of the flags. targets: tokens of --target with --sampled, any of which will do; empty: none. Throws InputError
// where flags do not say one event.
std::unique_ptr<Event> make_event(const EventOptions& o, const LoadedModel& model,
                                  std::span<const TokenId> targets = {});
// The prompts of --prompt, --prompts or --dist, of which one must be given.
std::unique_ptr<InputLaw> make_law(const PromptOptions& o, const LoadedModel& model);

}  // namespace deeptail::cli
