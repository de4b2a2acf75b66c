// Which of many events happen on sampled texts, each of which is sampled once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "deeptail/law.h"
#include "deeptail/load.h"
#include "deeptail/patterns.h"
#include "deeptail/sampling.h"
#include "events/event_spec.h"
#include "events/text_score.h"

namespace deeptail {

class EventCounter {
 public:
  // All that it is given must outlive it, but for sampling and events. sampling: max_tokens is what the events want.
  EventCounter(const LoadedModel& model, const InputLaw& law, SamplingConfig sampling,
               const std::vector<EventSpec>& events, std::uint64_t seed, ThreadPool& pool);
  ~EventCounter();

  // Adds how often each event happens on texts [first, first + n) of the seed: [events].
  void add(std::uint64_t first, std::size_t n, std::span<std::uint64_t> counts);

 private:
  struct Pattern;
  struct Finished;
  void make_pattern(const LoadedModel& model, const EventSpec& spec, std::size_t event);
  void make_finished(const LoadedModel& model, const EventSpec& spec, std::size_t event);
  void run(std::uint64_t first, std::span<const std::span<const TokenId>> prompts);
  bool step(std::size_t text, std::size_t t, TokenId token);

  const InputLaw& law_;
  SamplingConfig sampling_;
  std::uint64_t seed_;
  ThreadPool& pool_;
  std::shared_ptr<const TokenTexts> texts_;  // where there is a tokenizer
  std::vector<Pattern> patterns_;
  std::vector<Finished> finished_;
  std::size_t width_, at_once_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<NextTokenLaw> laws_;  // [worker]
  // Of the texts in work.
  std::vector<TokenId> tokens_;         // [at_once, width]
  std::vector<Decoder::Text> decoded_;  // [at_once]
  std::vector<std::size_t> prompt_;     // [at_once]: tokens
  std::vector<std::uint32_t> states_;   // [at_once, patterns]
};

}  // namespace deeptail
