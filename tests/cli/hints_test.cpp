// The library says what is wrong, and the command line which flag helps: no message below src/cli names a
// flag, and no code listens to the words of an error. Progress is told in one way.
#include <functional>
#include <regex>
#include <vector>

#include "cli/run_binary.h"

namespace deeptail {
namespace {

// The texts in quotes of a line of C++, without its comment.
std::vector<std::string> literals_of(const std::string& line) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line.compare(at, 2, "//") == 0) break;
    if (line[at] == '\'') at += line.compare(at + 1, 1, "\\") == 0 ? 3 : 2;
    if (at >= line.size() || line[at] != '"') continue;
    std::string text;
    for (++at; at < line.size() && line[at] != '"'; ++at) {
      if (line[at] == '\\') ++at;
      text += line[at];
    }
    out.push_back(text);
  }
  return out;
}

bool names_flag(const std::string& line) {
  static const std::regex kFlag("(^|[^-a-zA-Z0-9])--[a-z]");
  for (const std::string& text : literals_of(line))
    if (std::regex_search(text, kFlag)) return true;
  return false;
}

// Every line of the library's sources.
void for_each_line(const std::function<void(const std::string& file, const std::string& line)>& visit) {
  namespace fs = std::filesystem;
  for (const char* top : {"src", "include"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(DEEPTAIL_SOURCE) / top)) {
      const std::string file = fs::relative(entry.path(), DEEPTAIL_SOURCE).string();
      const std::string ending = entry.path().extension();
      const bool code = ending == ".cpp" || ending == ".h" || ending == ".cu" || ending == ".cuh";
      if (!code || file.starts_with("src/cli/")) continue;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) visit(file, line);
    }
}

TEST(Hints, TheTestSeesFlags) {
  EXPECT_TRUE(names_flag(R"(throw InputError("--only {}: no such method", name);)"));
  EXPECT_TRUE(names_flag(R"(      "more (\"x\") particles (--budget) would help");)"));
  EXPECT_FALSE(names_flag(R"(int n = 3; // "--budget")"));
  EXPECT_FALSE(names_flag(R"(if (c == '"' || --n == 0) return "the-final--countdown";)"));
}

TEST(Hints, NoMessageBelowTheCommandLineNamesAFlag) {
  std::size_t lines = 0;
  for_each_line([&](const std::string& file, const std::string& line) {
    ++lines;
    if (file == "src/report/item_details.cpp") return;  // writes commands for the page
    EXPECT_FALSE(names_flag(line)) << file << ": " << line;
  });
  EXPECT_GT(lines, 10000u);
}

TEST(Hints, NoCodeListensToTheWordsOfAnError) {
  const std::regex listens(R"(what\(\)\)*(\.(starts_with|ends_with|find|compare|contains)|\s*[!=]=))");
  for_each_line([&](const std::string& file, const std::string& line) {
    EXPECT_FALSE(std::regex_search(line, listens)) << file << ": " << line;
  });
}

// How far, and whether to go on: a Watch says both.
TEST(Sources, ProgressHasOneSpelling) {
  const std::regex other(R"(std::function<bool\((\)|double|std::size_t|std::uint64_t)|[kK]eep_?[gG]oing)");
  std::size_t watches = 0;
  for_each_line([&](const std::string& file, const std::string& line) {
    watches += line.find("const Watch& watch") != std::string::npos;
    if (line.find("using Watch = ") != std::string::npos) return;
    if (file.find("c_api") != std::string::npos) return;          // a Watch as C can say it
    if (line.find("std::int64_t> states") != std::string::npos) return;  // false: an exception was kept
    if (line.find("is_finished") != std::string::npos) return;  // about a file, not about going on
    EXPECT_FALSE(std::regex_search(line, other)) << file << ": " << line;
  });
  EXPECT_GT(watches, 30u);
}

class HintsCommand : public CliTest {};

TEST_F(HintsCommand, TheCommandLineSaysWhichFlagHelps) {
  const std::string count = "truth --model dt-1l --dist hex --quiet --out " + path("t.json");
  EXPECT_EQ(run(count + " --samples 64").code, 0);
  refused(count + " --samples 32", "and merge the two (--out, or --first and `deeptail truth merge`)");
  refused("bench run suites/quick.toml --only mh --quiet --out " + path("run"),
          "method mh: the suite quick has none of this name (--only)");
}

}  // namespace
}  // namespace deeptail
