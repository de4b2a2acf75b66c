// deeptail model generate: what a model says.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/run_binary.h"
#include "deeptail/core.h"

namespace deeptail {
namespace {

class GenerateTest : public CliTest {};

TEST_F(GenerateTest, SaysTheSameForAnyThreadsAndCount) {
  const std::string command = "model generate --model dt-1l --prompt '<|BOS|>The' --within 12 --stop none ";
  const std::string many = run(command + "--count 40 --threads 1").out;
  EXPECT_EQ(many, run(command + "--count 40 --threads 3").out);
  EXPECT_TRUE(many.starts_with(run(command + "--count 3").out));
  EXPECT_EQ(std::count(many.begin(), many.end(), '\n'), 40);
  EXPECT_NE(many, run(command + "--count 40 --seed 2").out);
  const std::string greedy = run(command + "--count 2 --greedy").out;
  EXPECT_EQ(greedy.substr(0, greedy.size() / 2), greedy.substr(greedy.size() / 2));
  EXPECT_EQ(greedy, run(command + "--count 2 --top-k 1 --seed 9").out);
}

TEST_F(GenerateTest, TellsTokensInJson) {
  const Json found = json("model generate --model dt-1l --dist hex --within 4 --stop none");
  EXPECT_EQ(found.at("tokens").size(), 4u);
  EXPECT_EQ(found.at("stopped"), false);
  const std::string prompt = found.at("prompt"), ids = run("dist sample hex --count 1").out;
  EXPECT_EQ(prompt + "\n", run("dist sample hex --count 1 --text").out);
  EXPECT_EQ(fmt::format("{}\n", fmt::join(found.at("prompt_tokens").get<std::vector<int>>(), " ")), ids);
}

// Text i of a seed is the same one for both.
TEST_F(GenerateTest, SaysWhatTruthCounts) {
  const std::string about = "--model dt-1l --dist hex --seed 5 --stop none ";
  const std::string said = run("model generate " + about + "--within 6 --count 200 --json").out;
  std::size_t found = 0;
  for (std::size_t at = 0; at < said.size();) {
    const std::size_t stop = said.find('\n', at);
    const Json text = parse_json(said.substr(at, stop - at), "generate");
    found += text.at("continuation").get<std::string>().find('e') != std::string::npos;
    at = stop + 1;
  }
  EXPECT_GT(found, 20u);
  ASSERT_EQ(
      run("truth " + about + "--contains e --within 6 --samples 200 --quiet --out '" + path("t") + "'").code,
      0);
  EXPECT_EQ(json("truth show '" + path("t") + "'").at("events")[0].at("count").get<std::size_t>(), found);
}

// A stop token ends a text and is no part of it.
TEST_F(GenerateTest, StopsAtATokenOfTheUser) {
  const std::string command = "model generate --model dt-1l --prompt '<|BOS|>The' --within 30 --greedy ";
  const Json whole = json(command + "--stop none");
  const auto tokens = whole.at("tokens").get<std::vector<int>>();
  ASSERT_EQ(tokens.size(), 30u);
  const std::string last = json("model detokenize --model dt-1l " + std::to_string(tokens[5])).at("text");
  const Json stopped = json(command + "--stop '" + last + "'");
  EXPECT_EQ(stopped.at("stopped"), true);
  EXPECT_LE(stopped.at("tokens").size(), 5u);
}

// What llama2.c prints at temperature 0.
TEST_F(GenerateTest, GreedyStoryIsThePublishedOne) {
  const std::string folder = DEEPTAIL_SHARED_DATA "/real/stories260K-hf";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "there is no " << folder;
  const std::string story =
      run("model generate --model '" + folder + "' --greedy --within 60 --stop none").out;
  EXPECT_TRUE(story.starts_with(
      "Once upon a time, there was a little girl named Lily. She loved to play outside in the "
      "park. One day, she saw a big, red ball."))
      << story;
}

TEST_F(GenerateTest, RefusesInOneSentence) {
  refused("model generate --model dt-1l --prompt a --dist hex",
          "expected one of --dist, --prompt and --prompts");
  refused("model generate --model dt-1l --prompt a --stop eos", "name no token that ends a text");
  refused("model generate --model dt-1l --dist hex --within 40",
          "a prompt of 33 tokens and 40 new ones: dt-1l takes at most 64");
}

}  // namespace
}  // namespace deeptail
