// What a suite's text may not be, and what it may cost to say so.
#include "runs/suite.h"

#include <gtest/gtest.h>

#include "runs/toml_keys.h"

namespace deeptail {
namespace {

std::string repeated(const std::string& part, std::size_t n, const std::string& between) {
  std::string out = part;
  for (std::size_t i = 1; i < n; ++i) out += between + part;
  return out;
}

std::string suite_with(const std::string& targets, const std::string& methods) {
  return "name = \"s\"\nmodels = [\"m\"]\ndistributions = [\"d\"]\n[targets]\n" + targets +
         "\n[[methods]]\n" + methods + "\n";
}

void expect_not_read(const std::string& text, const std::string& part) {
  try {
    parse_suite(text, "s.toml");
    FAIL() << "read: " << text.substr(0, 80);
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(SuiteKeys, OfManyPartsAreRefused) {
  for (const std::string part : {"a", "\"a.b\"", "'c'", " a "}) {
    const std::string key = repeated(part, 60000, "."), line = "\n" + key + " = 1";
    for (const std::string& text : {key + " = 1", "[" + key + "]", "[[" + key + "]]", "x = {" + key + " = 1}",
                                    "x = \"\"\"a\n\"\"\"\"\"" + line, "x = '''a\n''''" + line,
                                    "x = [1.5, 2.5]\n# \"" + line, "x = '\\'" + line})
      expect_not_read(text, "a key of more than 8 parts");
  }
  EXPECT_NO_THROW(check_toml_keys(repeated("a", kMaxKeyParts, ".") + " = 1", "s.toml"));
  EXPECT_THROW(check_toml_keys(repeated("a", kMaxKeyParts + 1, ".") + " = 1", "s.toml"), InputError);
  expect_not_read("x = 1\n\n" + repeated("a", 20, ".") + " = 1", "s.toml: line 3: ");
}

// As deep as keys of few parts can be made: within tables within tables.
TEST(SuiteKeys, NestedTablesAreRefusedInTime) {
  const std::string key = repeated("a", kMaxKeyParts, ".");
  std::string text = "1";
  for (int depth = 0; depth < 250; ++depth) text = "{" + key + " = " + text + "}";
  expect_not_read("[" + key + "]\nx = " + text, "key \"name\" is missing");
  expect_not_read("x = " + repeated("[", 5000, "") + repeated("]", 5000, ""), "not valid TOML");
}

TEST(SuiteKeys, DotsElsewhereAreNot) {
  const std::string dots(100, '.');
  for (const std::string& text :
       {"# " + dots, "x = \"" + dots + "\"", "x = \"\\\"" + dots + "\"", "x = '" + dots + "'",
        "x = \"\"\"\n" + dots + "\"" + dots + "\\\"\"\" " + dots + "\"\"\"",
        "x = '''\n" + dots + "''" + dots + "'''", "x = [" + repeated("0.5", 100, ", ") + "]",
        repeated("a.b = 1.5", 100, "\n"), "\"" + dots + "\" = 1"})
    EXPECT_NO_THROW(check_toml_keys(text, "s.toml")) << text;
  for (const std::string unfinished : {"\"", "'", "\"\"\"", "'''", "\"\\", "#"})
    EXPECT_NO_THROW(check_toml_keys(unfinished, "s.toml"));
}

// Together these would take all memory.
TEST(SuiteSweeps, AreCountedBeforeTheyAreMade) {
  std::string list = "[1000";
  for (int i = 1001; i < 2000; ++i) list += fmt::format(",{}", i);
  list += "]";
  const std::string targets = "band = [0.1, 0.2]\ncount = 1";
  expect_not_read(suite_with(targets, "method = \"ga-amls\"\nparticles = " + list + "\nmoves = " + list +
                                          "\ncalibration = " + list),
                  "line 10: methods.moves: more than 1000 combinations");
  std::string unknown = "method = \"mc\"\nbudget = " + list;
  for (int i = 0; i < 10000; ++i) unknown += fmt::format("\nk{} = 1", i);
  expect_not_read(suite_with(targets, unknown), "line 10: methods.k0: method mc has no setting \"k0\"");
  std::string methods = "method = \"mc\"\nbudget = " + list;
  for (int i = 0; i < 10; ++i)
    methods += fmt::format("\n[[methods]]\nmethod = \"mc\"\nvariant = \"v{}\"\nbudget = {}", i, list);
  expect_not_read(suite_with(targets, methods), "more than 10000 rows in the whole suite");
}

TEST(SuiteTokens, IdsAndTexts) {
  const auto suite = [](const std::string& targets) { return suite_with(targets, "method = \"mc\""); };
  const SuiteTargets targets = parse_suite(suite("tokens = [310, \" the\"]"), "s.toml").targets;
  ASSERT_EQ(targets.tokens.size(), 2u);
  EXPECT_EQ(targets.tokens[0].id, 310u);
  EXPECT_EQ(targets.tokens[1].text, " the");
  EXPECT_FALSE(targets.truth_needed);
  EXPECT_TRUE(parse_suite(suite("tokens = [3]\ntruth = \"t.json\""), "s.toml").targets.truth_needed);
  expect_not_read(suite("tokens = []"), "line 5: targets.tokens: expected a list");
  for (const char* bad : {"-1", "1.5", "\"\"", "[1]"})
    expect_not_read(suite(fmt::format("tokens = [{}]", bad)),
                    "line 5: targets.tokens: expected the id of a token");
  expect_not_read(suite("tokens = [1]\nband = [0.1, 0.2]"),
                  "line 6: targets.band: chooses targets, but tokens names them");
}

// The place is told once, whoever finds the mistake: the reader of settings, or a method's own checks.
TEST(Suite, MistakesOfMethodsTellTheirPlaceOnce) {
  for (const char* setting : {"budget = \"x\"", "survive_fraction = 7", "kernel = 1", "device = \"tpu\""}) {
    const std::string text = fmt::format(
        "name = \"x\"\nmodels = [\"m\"]\ndistributions = [\"d\"]\n[targets]\nband = [1e-6, 1e-4]\n"
        "count = 3\n[[methods]]\nmethod = \"tokensplit\"\n{}\n",
        setting);
    try {
      parse_suite(text, "s.toml");
      ADD_FAILURE() << setting;
    } catch (const InputError& e) {
      const std::string sentence = e.what();
      EXPECT_TRUE(sentence.starts_with("s.toml: line ")) << sentence;
      EXPECT_EQ(sentence.find("s.toml", 1), std::string::npos) << sentence;
    }
  }
}

}  // namespace
}  // namespace deeptail
