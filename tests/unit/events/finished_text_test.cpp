// Events on finished texts: scores of texts held and changed against texts decoded anew, and means against enumeration.
#include "events/finished_text.h"

#include <gtest/gtest.h>

#include "events/judge.h"
#include "sizes.h"
#include "unit/tiny_texts.h"

namespace deeptail {
namespace {

std::shared_ptr<const TokenTexts> tiny_texts() {
  return std::make_shared<const TokenTexts>(tiny_token_texts());
}

EventSpec judged_by_length(std::size_t within) {
  return {.kind = EventKind::kJudge, .value = "length of the line", .within = within, .threshold = 0.0};
}

// Twice the letters b, less those of a, and the texts that it was asked about.
class Letters final : public TextScore {
 public:
  explicit Letters(double threshold) : threshold_(threshold) {}
  std::string text() const override { return "has many b"; }
  void scores(std::span<const SampledText> texts, std::span<double> out, ThreadPool&) const override {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      double score = 0.0;
      for (const char c : tiny_token_texts().continuation(texts[i].prompt, texts[i].continuation))
        score += c == 'b' ? 2.0 : c == 'a' ? -1.0 : 0.0;
      out[i] = score - threshold_;
    }
  }

 private:
  double threshold_;
};

TEST(FinishedText, HeldAndChangedTextsScoreAsAnew) {
  constexpr std::size_t kSteps = 5, n = 60;
  const TinyModel tiny(true, 3);
  const TinyPrompts law;
  const FinishedTextEvent event(judged_by_length(kSteps), std::make_shared<const Letters>(2.0),
                                tiny_sampling(kSteps), tiny_texts());
  EXPECT_EQ(event.n_parts(), kSteps);
  for (const std::size_t threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    const auto scorer = event.scorer(tiny.model(), law, {.max_held = n}, pool),
               other = event.scorer(tiny.model(), law, {}, pool);
    const Inputs inputs = sample_inputs(law, 1, 0, n, pool);
    std::vector<std::uint64_t> numbers = sample_numbers(event, law, 1, 0, n);
    std::vector<double> scores(n), anew(n), again(n);
    scorer->scores({inputs.batch(), numbers}, scores);
    scorer->hold({inputs.batch(), numbers}, {});
    std::vector<std::uint32_t> held(n), first(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      held[i] = i;
      first[i] = inputs.lengths[i];
      numbers[i * kSteps + i % kSteps] = ~numbers[i * kSteps + i % kSteps];
    }
    const Proposals proposals{{inputs.batch(), numbers}, held, first};
    other->scores({inputs.batch(), numbers}, anew);
    scorer->rescore(proposals, again);
    EXPECT_EQ(again, anew);
    std::vector<std::uint8_t> accept(n);
    scorer->decide(0.0, proposals, accept);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(accept[i] != 0, anew[i] >= 0.0);
    // What was accepted is held now.
    scorer->decide(0.0, proposals, accept);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(accept[i] != 0, anew[i] >= 0.0);
  }
}

TEST(FinishedText, PlainSamplingHasTheExactMean) {
  constexpr std::size_t kSteps = 4;
  const TinyModel tiny(false, 4);
  const TinyPrompts law;
  const FinishedTextEvent event(judged_by_length(kSteps), std::make_shared<const Letters>(4.0),
                                tiny_sampling(kSteps), tiny_texts());
  const double truth =
      TinyTruth(tiny.model(), tiny_sampling(kSteps))({"", nullptr, [](const std::string& text, auto) {
                                                        double score = 0.0;
                                                        for (const char c : text)
                                                          score += c == 'b' ? 2.0 : c == 'a' ? -1.0 : 0.0;
                                                        return score >= 4.0;
                                                      }});
  ThreadPool pool(2);
  const std::size_t n = sized<std::size_t>(20000, 1000);
  const Inputs inputs = sample_inputs(law, 1, 0, n, pool);
  const std::vector<std::uint64_t> numbers = sample_numbers(event, law, 1, 0, n);
  std::vector<double> scores(n);
  event.scorer(tiny.model(), law, {}, pool)->scores({inputs.batch(), numbers}, scores);
  const auto hits = std::count_if(scores.begin(), scores.end(), [](double s) { return s >= 0.0; });
  EXPECT_NEAR(static_cast<double>(hits) / static_cast<double>(n), truth,
              4.0 * std::sqrt(truth / static_cast<double>(n)));
}

// The judge of the command line, through the event.
TEST(FinishedText, AJudgeSeesTheContinuation) {
  const TinyModel tiny(false, 4);
  const TinyPrompts law;
  const auto judge = std::make_shared<const Judge>(
      JudgeConfig{.command = "awk -W interactive -F'\"continuation\":' '{ print gsub(/b/, \"\", $2); fflush() }'",
                  .threshold = 2.0},
      tiny_texts());
  const FinishedTextEvent event(judged_by_length(4), judge, tiny_sampling(4), tiny_texts());
  ThreadPool pool(2);
  const Inputs inputs = sample_inputs(law, 1, 0, 50, pool);
  const std::vector<std::uint64_t> numbers = sample_numbers(event, law, 1, 0, 50);
  std::vector<double> scores(50);
  const auto scorer = event.scorer(tiny.model(), law, {}, pool);
  scorer->scores({inputs.batch(), numbers}, scores);
  for (std::size_t i = 0; i < 50; ++i) {
    const AnswerText text = event.answer_text(inputs.sequence(i), scorer->answers().sequence(i));
    EXPECT_EQ(scores[i],
              static_cast<double>(std::count(text.continuation.begin(), text.continuation.end(), 'b')) - 2.0);
  }
  EXPECT_NE(event.json().find("\"judge\":\"length of the line\""), std::string::npos) << event.json();
}

}  // namespace
}  // namespace deeptail
