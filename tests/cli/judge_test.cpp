// Judges and probes, run as a user runs them.
#include "cli/run_binary.h"

namespace deeptail {
namespace {

class JudgeCommand : public CliTest {
 protected:
  // Counts the letters a to f of the continuation.
  static constexpr const char* kJudge =
      "--judge 'awk -W interactive -F\"continuation\" \"{ print gsub(/[a-f]/, \\\"\\\", \\$2); fflush() }\"' --within 4";
};

TEST_F(JudgeCommand, EstimatesAgreeWithPlainSampling) {
  const std::string question = std::string("estimate --model dt-1l --dist hex ") + kJudge + " --threshold 9 ";
  const Json split = json(question + "--budget 3000 --seed 2"),
             plain = json(question + "--method mc --budget 3000");
  EXPECT_EQ(split.at("event").at("threshold"), 9.0);
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

}  // namespace
}  // namespace deeptail
