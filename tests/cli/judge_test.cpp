// Judges, probes and forecasts, run as a user runs them.
#include <fmt/format.h>

#include "cli/run_binary.h"

namespace deeptail {
namespace {

class JudgeCommand : public CliTest {
 protected:
  // Counts the letters a to f of the continuation.
  static constexpr const char* kJudge =
      "--judge 'awk -W interactive -F\"continuation\" \"{ print gsub(/[a-f]/, \\\"\\\", \\$2); fflush() }\"' "
      "--within 4";
};

TEST_F(JudgeCommand, EstimatesAgreeWithPlainSampling) {
  const std::string question = std::string("estimate --model dt-1l --dist hex ") + kJudge + " --threshold 4 ";
  const Json split = json(question + "--budget 4000 --seed 2"),
             plain = json(question + "--method mc --budget 3000");
  EXPECT_EQ(split.at("event").at("threshold"), 4.0);
  EXPECT_EQ(split.at("event").at("within"), 4);
  EXPECT_EQ(split.at("guarantee"), "unbiased");
  ASSERT_GT(plain.at("p").get<double>(), 0.0);
  const double low = std::max(split.at("ci95")[0].get<double>(), plain.at("ci95")[0].get<double>()),
               high = std::min(split.at("ci95")[1].get<double>(), plain.at("ci95")[1].get<double>());
  EXPECT_LE(low, high) << split << plain;
}

TEST_F(JudgeCommand, ABadJudgeIsOneSentence) {
  const std::string question =
      "estimate --model dt-1l --dist hex --within 3 --threshold 1 --budget 1000 --judge ";
  refused(question + "'exit 4'", "exit 4: ended with exit code 4 after 0 of");
  refused(question + "'while read -r x; do echo yes; done'",
          "wrote \"yes\"; expected one finite number a line");
  refused(question + "'cat > /dev/null' --judge-timeout 0.3", "no answer for 0.3 seconds");
}

TEST_F(JudgeCommand, AProbeOfThePrompt) {
  std::string direction;
  for (int i = 0; i < 128; ++i) direction += fmt::format("{}{}", i == 0 ? "" : ",", i % 3 - 1);
  const std::string probe =
      write("probe.json",
            R"({"format":"deeptail-probe-1","layer":0,"position":"prompt","direction":[)" + direction + "]}");
  const std::string question = "estimate --model dt-1l --dist hex --probe '" + probe + "' ";
  const Json plain = json(question + "--threshold 5 --method mc --budget 4000");
  EXPECT_GE(plain.at("p").get<double>(), 0.0);
  EXPECT_EQ(plain.at("event").at("threshold"), 5.0);
  const std::string small =
      write("small.json", R"({"format":"deeptail-probe-1","layer":0,"position":"prompt","direction":[1,2]})");
  refused("estimate --model dt-1l --dist hex --probe '" + small + "' --threshold 5",
          "a direction of 2 numbers");
}

class ForecastCommand : public CliTest {};

TEST_F(ForecastCommand, OfAPoolAndOfALaw) {
  std::string prompts;
  for (int i = 0; i < 30; ++i) prompts += fmt::format("The house of number {}\n", i);
  const std::string rest = "' --starts-with ' king' --queries 10,1e6";
  const Json pool = json("forecast --model dt-1l --prompts '" + write("prompts.txt", prompts) + rest);
  EXPECT_EQ(pool.at("prompts"), 30);
  const Json& worst = pool.at("worst");
  ASSERT_EQ(worst.size(), 2u);
  EXPECT_TRUE(worst[0].at("splitting").is_null());
  EXPECT_EQ(worst[1].at("pool").at("log_p"), pool.at("largest_log_p"));
  EXPECT_GT(worst[1].at("forecast").at("p").get<double>(), worst[0].at("forecast").at("p").get<double>());
  const Json law = json(
      "forecast --model dt-1l --dist hex --starts-with ' king' --queries 5,10 --from 50 --budget 1000 --seed "
      "3");
  EXPECT_TRUE(law.at("worst")[0].at("pool").is_null());
  const Json& found = law.at("worst")[0].at("splitting");
  EXPECT_LE(found.at("interval")[0].get<double>(), found.at("p").get<double>());
  const Outcome text = run("forecast --model dt-1l --prompts '" + path("prompts.txt") + rest);
  EXPECT_NE(text.out.find("exact for these 30 prompts"), std::string::npos) << text.out;
}

TEST_F(ForecastCommand, BadQueriesAreRefused) {
  const std::string question = "forecast --model dt-1l --dist hex --starts-with a --queries ";
  refused(question + "0", "--queries: expected numbers from 1 on");
  refused(question + "1e3,,5", "--queries: expected numbers from 1 on");
  refused(question + "nan", "--queries: expected numbers from 1 on");
  refused(question + "10 --from 0", "--from");
  refused(question + "10 --top 2", "top 2: expected at least 3");
  refused(question + "10 --budget -1", "--budget");
  refused(question + "10 --temperature 0", "--temperature");
  refused("forecast --model dt-1l --starts-with a --queries 10",
          "expected one of --dist, --prompt and --prompts");
}

}  // namespace
}  // namespace deeptail
