// What a person sees: progress on terminals of several widths, and text from files that a terminal would
// obey.
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <thread>

#include "cli/run_binary.h"

namespace deeptail {
namespace {

// A terminal of its own for one script.
class Screen {
 public:
  Screen(const std::filesystem::path& folder, int columns, const std::string& script)
      : socket_(folder.filename().string() + "-" + std::to_string(columns)) {
    const std::string file = (folder / ("script-" + std::to_string(columns))).string();
    std::ofstream(file) << "cd '" << DEEPTAIL_SOURCE << "'\n" << script << "echo END\nsleep 60\n";
    tmux("-f /dev/null new-session -d -x " + std::to_string(columns) + " -y 30 'sh " + file + "'");
  }
  ~Screen() { tmux("kill-server"); }

  // All that was ever on it, in lines as they were printed or as they are on the screen.
  std::string text(bool as_printed) const {
    return tmux(std::string("capture-pane -p -S - ") + (as_printed ? "-J" : ""));
  }

  // Adds what is on the screen now; true at the end of the script.
  bool look(std::set<std::string>& seen) const {
    const std::vector<std::string> lines = lines_of(text(false));
    seen.insert(lines.begin(), lines.end());
    return !lines.empty() && lines.back() == "END";
  }

  // Without trailing spaces and empty lines.
  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      std::string line = text.substr(at, end - at);
      line.erase(line.find_last_not_of(' ') + 1);
      if (!line.empty()) lines.push_back(line);
      at = end + 1;
    }
    return lines;
  }

  static bool there_is_one() { return std::system("command -v tmux >/dev/null 2>&1") == 0; }

 private:
  std::string tmux(const std::string& arguments) const {
    std::string out;
    FILE* pipe =
        ::popen(("LC_ALL=C.UTF-8 tmux -u -L " + socket_ + " " + arguments + " 2>/dev/null").c_str(), "r");
    std::array<char, 4096> buffer;
    for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
      out.append(buffer.data(), n);
    ::pclose(pipe);
    return out;
  }

  std::string socket_;
};

class TerminalTest : public CliTest {
 protected:
  std::string deeptail(const std::string& arguments) const {
    return std::string("'") + DEEPTAIL_BINARY + "' " + arguments + "\n";
  }
  static bool wait(const std::function<bool()>& over) {
    for (int i = 0; i < 1200; ++i) {
      if (over()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
};

TEST_F(TerminalTest, ProgressIsOneLineAndGoneInTheEnd) {
  if (!Screen::there_is_one()) GTEST_SKIP() << "tmux is not installed: no terminal to look at";
  const std::string suite = write("s.toml",
                                  "name = \"a suite with quite a long name\"\nmodels = [\"dt-1l\"]\n"
                                  "distributions = [\"hex\"]\n[targets]\nband = [1e-6, 1e-3]\ncount = 2\n"
                                  "[[methods]]\nmethod = \"mc\"\nbudget = 20000\n");
  const std::string estimate = "estimate --model dt-1l --dist hex --target 310 --json --threads 1 --method ";
  std::vector<std::unique_ptr<Screen>> screens;
  std::vector<std::set<std::string>> seen(3);
  for (const std::string columns : {"50", "80", "120"})
    screens.push_back(std::make_unique<Screen>(
        folder_, std::stoi(columns),
        deeptail(estimate + "mc --budget 60000") +
            deeptail("truth --model dt-1l --dist hex --samples 20000 --out " + path(columns) + ".json") +
            deeptail("bench run " + suite + " --threads 1 --out " + path(columns)) +
            deeptail(estimate + "ga-amls --calibration 3000 --particles 60 --moves 4")));
  EXPECT_TRUE(wait([&] {
    bool over = true;
    for (std::size_t i = 0; i < 3; ++i) over = screens[i]->look(seen[i]) && over;
    return over;
  }));
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<std::string> left = Screen::lines_of(screens[i]->text(true));
    ASSERT_EQ(left.size(), 5u) << screens[i]->text(true);  // a line of each command's result, and the end
    EXPECT_TRUE(left[0].starts_with("{\"p\":")) << left[0];
    EXPECT_NE(left[1].find(".json: 20000 inputs counted"), std::string::npos) << left[1];
    EXPECT_NE(left[2].find(": all 2 items done"), std::string::npos) << left[2];
    EXPECT_TRUE(left[3].starts_with("{\"p\":")) << left[3];
    for (const char* part : {"%", "mc", " hex "})
      EXPECT_TRUE(std::any_of(seen[i].begin(), seen[i].end(),
                              [&](const std::string& line) {
                                return line.find("0:0") != std::string::npos &&
                                       line.find(part) != std::string::npos;
                              }))
          << part << " was never in the line of progress of screen " << i;
  }
}

TEST_F(TerminalTest, ErrorsBeginOnACleanLineAndQuietIsQuiet) {
  if (!Screen::there_is_one()) GTEST_SKIP() << "tmux is not installed: no terminal to look at";
  const Screen screen(
      folder_, 80,
      deeptail("truth --model dt-1l --dist hex --samples 2^30 --seconds 1.5 --out " + path("t.json")) +
          deeptail("truth --model dt-1l --dist hex --samples 20000 --quiet --out " + path("u.json")));
  std::set<std::string> seen;
  EXPECT_TRUE(wait([&] { return screen.look(seen); }));
  const std::vector<std::string> left = Screen::lines_of(screen.text(true));
  ASSERT_EQ(left.size(), 3u) << screen.text(true);
  EXPECT_TRUE(left[0].starts_with("deeptail: stopped after ")) << left[0];
  EXPECT_TRUE(left[1].starts_with(path("u.json") + ": 20000 inputs")) << left[1];
}

// Neither results nor messages hold an escape that came from a file or a file's name.
class EscapesTest : public CliTest {
 protected:
  void expect_clean(const std::string& arguments, const std::string& part) const {
    const Outcome outcome = run(arguments);
    const std::string all = outcome.out + outcome.err;
    EXPECT_EQ(all.find('\x1b'), std::string::npos) << arguments << "\n" << all;
    EXPECT_NE(all.find(part), std::string::npos) << arguments << "\n" << all;
  }
  std::string truth_file(const std::string& name, const std::string& source, int first) const {
    return write(name, R"({"format":"deeptail-truth-1","model":"a","dist":"b","model_sha256":"",)"
                       R"("dist_sha256":"","samples":1,"ranges":[{"source":")" +
                           source + R"(","seed":1,"first":)" + std::to_string(first) +
                           R"(,"count":1}],"counts":{"2":1}})");
  }
};

TEST_F(EscapesTest, TruthMergeTellsSources) {
  const std::string a = truth_file("a.json", "y", 0), b = truth_file("b.json", "x\\u001b[31m", 1);
  expect_clean("truth merge " + a + " " + b + " --out " + path("c.json"), "x\\x1b[31m");
}

TEST_F(EscapesTest, ModelInspectTellsTheTokenizer) {
  std::filesystem::copy(std::string(DEEPTAIL_TEST_DATA) + "/model/rand-1l-64", path("m"));
  Json config = parse_json(read(path("m/config.json")), "config");
  config["tokenizer_file"] = "\x1b[31mx";
  write("m/config.json", json_text(config));
  expect_clean("model inspect " + path("m"), "\\x1b[31mx");
}

TEST_F(EscapesTest, DryRunTellsSuiteAndVariants) {
  const std::string suite = write("s.toml",
                                  "name = \"\\u001b[31m\"\nmodels = [\"dt-1l\"]\ndistributions = [\"hex\"]\n"
                                  "[targets]\nband = [1e-6, 1e-3]\ncount = 1\n[[methods]]\nmethod = \"mc\"\n"
                                  "budget = 100\nvariant = \"v\\u001b[32m\"\n");
  expect_clean("bench run " + suite + " --dry-run --quiet", "v\\x1b[32m");
}

TEST_F(EscapesTest, ListsTellFoldersAndMistakes) {
  std::filesystem::create_directories(path("models"));
  std::filesystem::copy(std::string(DEEPTAIL_TEST_DATA) + "/model/rand-1l-64", path("models/m\x1b[31m"));
  std::filesystem::create_directories(path("models/broken\x1b[31m"));
  write("models/broken\x1b[31m/config.json", "{");
  std::filesystem::create_directories(path("distributions"));
  write("distributions/d\x1b[31m.json", "{");
  ::setenv("DEEPTAIL_HOME", folder_.c_str(), 1);
  expect_clean("model list", "m\\x1b[31m");
  expect_clean("dist list", "d\\x1b[31m.json: not valid JSON");
  expect_clean("model inspect 'm\x1b[31n'", "did you mean");
  ::unsetenv("DEEPTAIL_HOME");
}

TEST_F(EscapesTest, CharactersOfUtf8StayOnlyWhereTheLocaleHasThem) {
  const auto shown = [&](const char* locale) {
    ::setenv("LC_ALL", locale, 1);
    const std::string out = run("model detokenize --model dt-1l 1197").out;
    ::unsetenv("LC_ALL");
    return out;
  };
  EXPECT_EQ(shown("C.UTF-8"), "ci\u00f3n\n");
  EXPECT_EQ(shown("C"), "ci\\xc3\\xb3n\n");
}

}  // namespace
}  // namespace deeptail
