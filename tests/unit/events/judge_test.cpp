#include "events/judge.h"

#include <gtest/gtest.h>

#include "deeptail/core.h"

namespace deeptail {
namespace {

const Tokenizer& judged() {
  static const Tokenizer found = Tokenizer::load(std::string(DEEPTAIL_SOURCE) + "/models/tokenizer.json");
  return found;
}

std::shared_ptr<const TokenTexts> texts_of_tokens() {
  static const auto found = std::make_shared<const TokenTexts>(token_texts(judged(), judged().vocab_size()));
  return found;
}

// Texts that stay.
struct Texts {
  std::vector<std::vector<TokenId>> prompts, continuations;
  std::vector<SampledText> views() const {
    std::vector<SampledText> out;
    for (std::size_t i = 0; i < prompts.size(); ++i) out.push_back({prompts[i], continuations[i]});
    return out;
  }
};

Texts some_texts(std::size_t n) {
  Texts out;
  for (std::size_t i = 0; i < n; ++i) {
    out.prompts.push_back(judged().encode_input("To be \"or\" not\n"));
    out.continuations.push_back(judged().encode(std::string(i % 7, 'a') + " word " + std::to_string(i)));
  }
  return out;
}

std::vector<double> scores_of(const Judge& judge, const Texts& texts, std::size_t threads = 2) {
  ThreadPool pool(threads);
  const std::vector<SampledText> views = texts.views();
  std::vector<double> out(views.size());
  judge.scores(views, out, pool);
  return out;
}

TEST(Judge, ScoreIsTheNumberLessTheThreshold) {
  // The length of the line, which escapes the prompt's quotes and the end of its line.
  const Judge judge({.command = "while IFS= read -r line; do echo ${#line}; done", .threshold = 60.5},
                    texts_of_tokens());
  const Texts texts = some_texts(20);
  const std::vector<double> scores = scores_of(judge, texts);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::string expected = R"({"prompt":"To be \"or\" not\n","continuation":")" +
                                 judged().decode(texts.continuations[i]) + "\"}";
    EXPECT_EQ(scores[i], static_cast<double>(expected.size()) - 60.5);
  }
}

// A judge that answers with how many lines it has read says so once of each text.
TEST(Judge, EveryTextIsJudgedOnce) {
  const Judge judge({.command = "n=0; while read -r line; do n=$((n + 1)); echo $n; done"},
                    texts_of_tokens());
  Texts texts = some_texts(5);
  const std::vector<double> first = scores_of(judge, texts);
  EXPECT_EQ(first, (std::vector<double>{1, 2, 3, 4, 5}));
  const Texts more = some_texts(6);
  for (std::size_t i = 0; i < 6; ++i) {
    texts.prompts.push_back(more.prompts[i]);
    texts.continuations.push_back(more.continuations[i]);
  }
  EXPECT_EQ(scores_of(judge, texts), (std::vector<double>{1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6}));
}

TEST(Judge, NumbersAndWhatIsNone) {
  EXPECT_EQ(parse_judgement(" 0.25\r", "j"), 0.25);
  EXPECT_EQ(parse_judgement("-1e-3", "j"), -1e-3);
  EXPECT_EQ(parse_judgement("+7", "j"), 7.0);
  EXPECT_EQ(parse_judgement("1e-400", "j"), 0.0);
  for (const char* bad : {"", "nan", "inf", "-inf", "1e400", "0.5 yes", "yes", "+-1", "0x1p3", "1,5"})
    EXPECT_THROW(parse_judgement(bad, "j"), InputError) << bad;
}

TEST(Judge, BadJudgesAreOneSentence) {
  const auto error = [](const std::string& command) -> std::string {
    try {
      const Judge judge({.command = command, .timeout = 20.0}, texts_of_tokens());
      scores_of(judge, some_texts(10));
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(error("while read -r x; do echo no; done").find("wrote \"no\"; expected one finite number"),
            std::string::npos);
  EXPECT_NE(error("while read -r x; do echo nan; done").find("wrote \"nan\""), std::string::npos);
  EXPECT_NE(error("read -r x; echo 1; exit 7").find("exit code 7 after 1 of 10"), std::string::npos);
  EXPECT_THROW(Judge({.command = ""}, texts_of_tokens()), InputError);
  EXPECT_THROW(Judge({.command = "cat", .threshold = NAN}, texts_of_tokens()), InputError);
  EXPECT_THROW(Judge({.command = "cat", .timeout = 0.0}, texts_of_tokens()), InputError);
}

}  // namespace
}  // namespace deeptail
