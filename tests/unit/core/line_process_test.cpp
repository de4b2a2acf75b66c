#include "core/line_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "core/stopwatch.h"
#include "deeptail/core.h"
#include "sizes.h"

namespace deeptail {
namespace {

std::string error_of(const std::string& command, std::size_t n, double seconds = 20.0) {
  try {
    LineProcess process(command, seconds);
    const std::vector<std::string> lines(n, "x");
    process.ask(lines);
    process.ask(lines);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(LineProcess, AnswersEveryLineAndIsKeptRunning) {
  LineProcess process("n=0; while read -r line; do n=$((n + 1)); echo \"$n $line\"; done", 20.0);
  const std::vector<std::string> first = {"a", "b c"}, second = {"d"};
  EXPECT_EQ(process.ask(first), (std::vector<std::string>{"1 a", "2 b c"}));
  EXPECT_EQ(process.ask(second), (std::vector<std::string>{"3 d"}));
  EXPECT_TRUE(process.ask({}).empty());
}

// cat fills its output long before all is written: whoever writes everything first waits for ever.
TEST(LineProcess, NoBatchIsTooLarge) {
  LineProcess process("cat", 60.0);
  std::vector<std::string> lines(sized<std::size_t>(40000, 20000));
  for (std::size_t i = 0; i < lines.size(); ++i) lines[i] = std::string(i % 200, 'x') + std::to_string(i);
  EXPECT_EQ(process.ask(lines), lines);
}

TEST(LineProcess, OneSentenceForEveryWayToFail) {
  EXPECT_NE(error_of("exit 3", 2).find("ended with exit code 3 after 0 of 2 answers"), std::string::npos);
  EXPECT_NE(error_of("read -r x; echo 1", 2).find("ended with exit code 0 after 1 of 2 answers"),
            std::string::npos);
  EXPECT_NE(error_of("read -r x; kill -9 $$", 1).find("ended by signal 9"), std::string::npos);
  EXPECT_NE(error_of("/nowhere/judge", 1).find("ended with exit code 127"), std::string::npos);
  EXPECT_NE(error_of("printf '1\\n2\\n'; cat", 1).find("more lines than it was given"), std::string::npos);
  EXPECT_NE(error_of("tr -d '\\n' < /dev/zero", 1).find("without the end of a line"), std::string::npos);
  EXPECT_NE(error_of("exec 1>&-; sleep 30", 1).find("closed its output"), std::string::npos);
}

TEST(LineProcess, ASilentProgramIsGivenUp) {
  const Stopwatch watch;
  const std::string error = error_of("cat > /dev/null", 3, 0.2);
  EXPECT_NE(error.find("no answer for 0.2 seconds, after 0 of 3"), std::string::npos) << error;
  EXPECT_LT(watch.seconds(), 10.0);
}

TEST(LineProcess, LeavesNothingBehind) {
  for (const char* command : {"cat", "trap '' TERM; sleep 30", "exit 0"}) {
    const Stopwatch watch;
    { LineProcess process(command, 1.0); }
    EXPECT_LT(watch.seconds(), 10.0) << command;
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

// A program that has ended is an error of the write, not a signal that ends this process.
TEST(LineProcess, WritingToTheDeadIsNoSignal) {
  LineProcess process("exit 0", 20.0);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::vector<std::string> lines(20000, std::string(100, 'x'));
  EXPECT_THROW(process.ask(lines), InputError);
  EXPECT_THROW(process.ask(lines), InputError);
}

// Ctrl-C of a terminal goes to this program's group.
TEST(LineProcess, IsInAGroupOfItsOwn) {
  LineProcess process("while read -r line; do echo $$; done", 20.0);
  const std::vector<std::string> line = {""};
  const pid_t pid = std::stoi(process.ask(line)[0]);
  EXPECT_EQ(::getpgid(pid), pid);
  EXPECT_NE(::getpgid(pid), ::getpgid(0));
}

}  // namespace
}  // namespace deeptail
