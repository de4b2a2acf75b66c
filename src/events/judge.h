// A program that says one number of every text: the event is that the number reaches a threshold
// (docs/judges.md).
#pragma once

#include <memory>
#include <string>

#include "deeptail/patterns.h"
#include "events/text_score.h"

namespace deeptail {

struct JudgeConfig {
  std::string command;  // run by /bin/sh -c
  double threshold = 0.0;
  double timeout = 120.0;  // seconds without an answer
  void validate() const;
};

// One process, started with the first text and kept. Reads {"prompt": TEXT, "continuation": TEXT} a line and
// writes a number a line. What it said of a text is remembered, so a text is judged once.
class Judge final : public TextScore {
 public:
  // texts: what tokens add to a text.
  Judge(JudgeConfig config, std::shared_ptr<const TokenTexts> texts);
  ~Judge() override;
  std::string text() const override;
  void scores(std::span<const SampledText> texts, std::span<double> out, ThreadPool& pool) const override;

 private:
  struct State;
  JudgeConfig config_;
  std::shared_ptr<const TokenTexts> texts_;
  std::unique_ptr<State> state_;
};

// The number that a judge wrote as a line. Throws InputError for anything else, with `where` in front.
double parse_judgement(std::string_view line, std::string_view where);

}  // namespace deeptail
