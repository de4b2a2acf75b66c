// What a newcomer is told: help, examples, the nearest name for a mistyped one, the version.
#include <regex>

#include "cli/run_binary.h"

namespace deeptail {
namespace {

class HelpTest : public CliTest {};

// The commands below one, as its help lists them.
std::vector<std::string> commands_in(const std::string& help, bool of_the_program) {
  std::vector<std::string> names;
  bool listed = false;
  std::istringstream lines(help);
  const std::regex command("^  ([a-z]+)( .*)?$");
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(":")) listed = line == "Subcommands:" || (of_the_program && line != "Options:");
    if (line.starts_with("Example")) break;
    std::smatch found;
    if (listed && std::regex_match(line, found, command)) names.push_back(found[1]);
  }
  return names;
}

TEST_F(HelpTest, EveryCommandHasAnExampleThatNamesIt) {
  const std::string all = run("--help").out;
  const auto commands = commands_in(all, true);
  EXPECT_EQ(commands.size(), 13u) << all;
  std::size_t n = 0;
  const auto check = [&](const std::string& command) {
    const Outcome outcome = run(command + " --help");
    EXPECT_EQ(outcome.code, 0);
    EXPECT_NE(outcome.out.find("  deeptail " + command), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.out.find("\n\n\n"), std::string::npos) << command;
    ++n;
    return outcome.out;
  };
  for (const std::string& command : commands)
    for (const std::string& sub : commands_in(check(command), false)) check(command + " " + sub);
  EXPECT_GT(n, 25u);
  EXPECT_NE(all.find("Exit codes:"), std::string::npos);
  EXPECT_NE(run("estimate --help").out.find("The question:"), std::string::npos);
  const std::string of_estimate = run("estimate --help").out;
  for (const char* part :
       {"tokensplit: splitting on tokens", "Settings of tokensplit, static and ga-amls:", "--particles COUNT",
        "Settings of ga-amls:", "--step-size NUMBER", "(default 0.001)",
        "Settings of mhis:", "--normaliser WORD", "harmonic or", "--rel-error NUMBER", "--device WORD"})
    EXPECT_NE(of_estimate.find(part), std::string::npos) << part;
  const Outcome bare = run("");
  EXPECT_EQ(bare.out, all);
  EXPECT_EQ(bare.code, 2);
}

TEST_F(HelpTest, LinesFitTheTerminal) {
  ::setenv("COLUMNS", "60", 1);
  std::istringstream lines(run("estimate --help").out);
  ::unsetenv("COLUMNS");
  for (std::string line; std::getline(lines, line) && !line.starts_with("Example");)
    EXPECT_LT(line.size(), 60u) << line;
}

TEST_F(HelpTest, DidYouMean) {
  refused("estimat", "; did you mean \"estimate\"?");
  refused("model lgits", "; did you mean \"logits\"?");
  refused("estimate --modle dt-1l --target 5", "unknown flag \"--modle\"");
  refused("estimate --modle=dt-1l --target 5", "did you mean \"--model\"?");
  refused("activations capture --outt x", "did you mean \"--out\"?");
  refused("estimate --model dt-l1 --dist hex --target 5", "did you mean \"dt-1l\"?");
  refused("estimate --model dt-1l --dist hxe --target 5", "did you mean \"hex\"?");
  refused("estimate --model dt-1l --dist hex --target 5 --method tokensplt", "did you mean \"tokensplit\"?");
  refused("truth show dt-1l-hxe", "did you mean \"dt-1l-hex\"?");
  refused("estimate stray --target 5", "unknown word \"stray\"");
  refused("dist", "dist: expected one of list, show, sample");
  const Outcome far = run("zzzzzz");
  EXPECT_EQ(far.err.find("did you mean"), std::string::npos) << far.err;
}

TEST_F(HelpTest, VersionTellsCommitAndCompiler) {
  const Outcome outcome = run("--version");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(std::regex_match(
      outcome.out, std::regex(R"(deeptail \d+\.\d+\.\d+ \(commit \S+, \w+ [\d.]+, .*CUDA.*\)\n)")))
      << outcome.out;
}

}  // namespace
}  // namespace deeptail
