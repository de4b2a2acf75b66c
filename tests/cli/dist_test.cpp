// deeptail dist, run as a user runs it.
#include <sstream>

#include "cli/run_binary.h"

namespace deeptail {
namespace {

using DistCommand = CliTest;

TEST_F(DistCommand, SampleKeepsTheContract) {
  const Outcome plain = run("dist sample hex --count 5 --seed 1");
  EXPECT_EQ(plain.code, 0) << plain.err;
  const auto golden =
      parse_json(read(std::string(DEEPTAIL_TEST_DATA) + "/inputs/golden_samples.json"), "golden");
  std::istringstream lines(plain.out);
  std::size_t n = 0;
  for (const auto& c : golden) {
    if (c.at("dist") != "hex" || c.at("seed") != 1) continue;
    std::string expected, line;
    for (const auto& id : c.at("tokens")) expected += (expected.empty() ? "" : " ") + json_text(id);
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(line, expected);
    ++n;
  }
  EXPECT_EQ(n, 5u);
  const Outcome json = run("dist sample hex --count 1 --first 3 --json");
  EXPECT_EQ(parse_json(json.out, "output"),
            golden.at(27).at("tokens"));  // hex is the fifth of eight, six cases each
}

TEST_F(DistCommand, ListAndShow) {
  const Outcome list = run("dist list");
  EXPECT_EQ(list.code, 0);
  for (const char* name : {"hex", "camel", "colon", "if", "caps", "english", "spanish", "icl"})
    EXPECT_NE(list.out.find(name), std::string::npos) << name;
  const auto listed = json("dist list");
  ASSERT_EQ(listed.size(), 16u);  // for two tokenizers
  EXPECT_EQ(listed.at(0).at("name"), "camel");
  EXPECT_EQ(listed.at(0).at("length"), 33);
  const Outcome show = run("dist show caps");
  EXPECT_EQ(show.code, 0);
  EXPECT_NE(show.out.find("table he_she: 2 tokens, 0.69 nats, positions 1"), std::string::npos) << show.out;
  EXPECT_NE(show.out.find("\"She\""), std::string::npos) << show.out;
  const auto shown = json("dist show icl");
  EXPECT_EQ(shown.at("length"), 30);
  EXPECT_EQ(shown.at("tables").size(), 19u);
}

TEST_F(DistCommand, UsersOwnFileAndItsMistakes) {
  const std::string good =
      R"({"format":"deeptail-distribution-1","name":"mine","d_vocab":9,"positions":["a"],"tables":{"a":{"ids":[4],"probabilities":[1]}}})";
  const std::string file = write("mine.json", good);
  EXPECT_EQ(run("dist sample '" + file + "' --count 2").out, "4\n4\n");
  EXPECT_EQ(run("dist show '" + file + "'").code, 0);
  std::string bad = good;
  bad.replace(bad.find("[1]"), 3, "[0.9]");
  refused("dist show '" + write("bad.json", bad) + "'",
          "bad.json: table \"a\" (position 0): the probabilities sum to 0.9: expected 1 within 1e-06");
  refused("dist show nonsense", "distribution nonsense: none of that name in");
  refused("dist show no/such.json", "cannot open");
  refused("dist sample hex --count many", "--count: expected a whole number from 1 to 2^62");
  refused("dist sample hex --count 2^80", "--count");
  refused("dist", "dist: expected one of list, show, sample, check");
}

TEST_F(DistCommand, LawsOfText) {
  const std::string law =
      R"({"format":"deeptail-law-1","name":"mine","kind":"template","bos":0,"text":"I am {n}","slots":{"n":{"range":[1,3]}}})";
  const std::string file = "'" + write("mine.json", law) + "'";
  const Outcome shown = run("dist show " + file + " --model dt-1l");
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_NE(shown.out.find("template: 1 slot, up to"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("<|BOS|>I am "), std::string::npos) << shown.out;
  const auto facts = json("dist show " + file + " --model dt-1l");
  EXPECT_EQ(facts.at("kind"), "template");
  EXPECT_EQ(facts.at("n_parts"), 1);
  EXPECT_EQ(facts.at("samples").size(), 3u);
  EXPECT_NE(run("dist check " + file + " --model dt-1l").out.find("mine: template, 1 slot"),
            std::string::npos);
  EXPECT_EQ(run("dist check hex").out, "hex: tables of tokens, 33 positions of 2 tables\n");
  const Outcome texts = run("dist sample " + file + " --model dt-1l --count 20 --text");
  EXPECT_EQ(std::count(texts.out.begin(), texts.out.end(), '\n'), 20);
  for (const char* text : {"<|BOS|>I am 1\n", "<|BOS|>I am 2\n", "<|BOS|>I am 3\n"})
    EXPECT_NE(texts.out.find(text), std::string::npos) << texts.out;
  const std::string later = run("dist sample " + file + " --model dt-1l --count 3 --first 17 --text").out;
  EXPECT_TRUE(!later.empty() && texts.out.ends_with(later)) << later;
  refused("dist show " + file, "its prompts are text");
  refused(
      "dist check '" + write("bad.json", R"({"format":"deeptail-law-1","kind":"pool"})") + "' --model dt-1l",
      "a pool has either \"prompts\" or a \"file\"");
  const Outcome asked =
      run("estimate --model dt-1l --dist " + file + " --target 310 --method mc --budget 64");
  EXPECT_EQ(asked.code, 0) << asked.err;
}

TEST_F(DistCommand, ABrokenFileDoesNotHideTheOthers) {
  std::filesystem::create_directories(path("distributions"));
  write("distributions/broken.json", "{");
  ::setenv("DEEPTAIL_HOME", folder_.c_str(), 1);
  for (const char* command : {"dist list", "dist list --json"}) {
    const Outcome listed = run(command);
    EXPECT_EQ(listed.code, 0);
    EXPECT_NE(listed.out.find("caps"), std::string::npos);
    EXPECT_NE(listed.err.find("broken.json: not valid JSON"), std::string::npos) << listed.err;
  }
  ::unsetenv("DEEPTAIL_HOME");
}

TEST_F(DistCommand, AFolderOfOneTokenizerIsPartOfTheName) {
  std::filesystem::create_directories(path("distributions/theirs"));
  write("distributions/theirs/hex.json", R"({"format":"deeptail-distribution-1","name":"hex","d_vocab":9,
    "tables":{"t":{"ids":[1,2],"probabilities":[0.5,0.5]}},"positions":["t"]})");
  ::setenv("DEEPTAIL_HOME", folder_.c_str(), 1);
  EXPECT_NE(run("dist list").out.find("theirs/hex "), std::string::npos);
  EXPECT_EQ(run("dist sample theirs/hex --count 3 --seed 1").code, 0);
  EXPECT_NE(run("dist show hex").out.find("4096"), std::string::npos) << "the name alone is the zoo's";
  refused("dist show theirs/hax", "none of that name");
  ::unsetenv("DEEPTAIL_HOME");
  refused("dist show theirs/hex", "none of that name");
}

TEST_F(DistCommand, UnknownWordsAreNamed) {
  refused("foo", "unknown command \"foo\"; expected one of estimate, ");
  refused("dist foo", "unknown command \"foo\"; expected one of list, show, sample, check");
  refused("bench foo --out x", "unknown command \"foo\"; expected one of run, export, tune");
}

TEST_F(DistCommand, BuildsForATokenizerAndFromText) {
  const std::string root = std::string(DEEPTAIL_TEST_DATA) + "/../..";
  const std::string tokenizer = " --tokenizer " + root + "/models/tokenizer.json";
  const Outcome built = run("dist build caps" + tokenizer + " --counts " + root +
                            "/training/token_counts.json --out " + path("caps.json"));
  EXPECT_EQ(built.code, 0) << built.err;
  EXPECT_EQ(read(path("caps.json")), read(root + "/distributions/caps.json"));
  write("text.txt", "to be or not to be\n");
  const Outcome text = run("dist from-text " + path("text.txt") + tokenizer + " --quiet --length 3 --out " +
                           path("mine.json"));
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(json("dist show " + path("mine.json")).at("length"), 4);
  for (const char* bad : {"dist build hexx", "dist build camel", "dist build icl --corpus x.txt",
                          "dist build hex --bos 99999", "dist from-text none.txt"}) {
    const Outcome refused = run(bad + tokenizer + " --quiet --out " + path("no.json"));
    EXPECT_EQ(refused.code, 2) << bad << refused.err;
    EXPECT_FALSE(std::filesystem::exists(path("no.json"))) << bad;
  }
}

}  // namespace
}  // namespace deeptail
