#include "core/line_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <thread>

#include "core/json.h"
#include "core/stopwatch.h"
#include "deeptail/core.h"

extern char** environ;

namespace deeptail {

namespace {

constexpr std::size_t kPieceBytes = 1 << 16, kLongestAnswer = 4096;
constexpr int kPollMs = 50;
constexpr double kGraceSeconds = 1.0;  // to end by itself, and then after a SIGTERM

struct Pipe {
  int read = -1, write = -1;
};

Pipe make_pipe(const std::string& command) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw InputError("{}: cannot be started: {}", printable(command), std::strerror(errno));
  return {ends[0], ends[1]};
}

void close_if_open(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

// The child gets the usual signals, whatever this process blocks, ignores or catches.
pid_t start(const std::string& command, int in, int out) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::string shell = "sh", option = "-c", text = command;
  std::array<char*, 4> arguments = {shell.data(), option.data(), text.data(), nullptr};
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, "/bin/sh", &files, &attributes, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) throw InputError("{}: cannot be started: {}", printable(command), std::strerror(error));
  return pid;
}

// Writing to a program that has ended raises SIGPIPE; held back in this thread, it is an error of write().
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    ::sigemptyset(&sigpipe_);
    ::sigaddset(&sigpipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~WithoutSigpipe() {
    const timespec at_once{};
    if (!was_pending_)
      while (::sigtimedwait(&sigpipe_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t sigpipe_{}, before_{};
  bool was_pending_ = false;
};

// Whether it ended within the time; status: how.
bool wait_for(pid_t pid, double seconds, int& status) {
  const Stopwatch waited;
  for (;;) {
    const pid_t found = ::waitpid(pid, &status, WNOHANG);
    if (found == pid || (found < 0 && errno == ECHILD)) return true;
    if (waited.seconds() >= seconds) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  if (WIFEXITED(status)) return fmt::format("ended with exit code {}", WEXITSTATUS(status));
  return "closed its output";
}

}  // namespace

LineProcess::LineProcess(std::string command, double seconds)
    : command_(std::move(command)), seconds_(seconds) {
  Pipe in = make_pipe(command_), out;
  try {
    out = make_pipe(command_);
    pid_ = start(command_, in.read, out.write);
  } catch (...) {
    for (int* fd : {&in.read, &in.write, &out.read, &out.write}) close_if_open(*fd);
    throw;
  }
  close_if_open(in.read);
  close_if_open(out.write);
  to_ = in.write;
  from_ = out.read;
  for (const int fd : {to_, from_}) ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

LineProcess::~LineProcess() { end(); }

void LineProcess::end() {
  close_if_open(to_);
  close_if_open(from_);
  if (pid_ < 0) return;
  int status = 0;
  if (!wait_for(pid_, kGraceSeconds, status)) {
    ::kill(-pid_, SIGTERM);
    if (!wait_for(pid_, kGraceSeconds, status)) {
      ::kill(-pid_, SIGKILL);
      while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
      }
    }
  }
  pid_ = -1;
}

void LineProcess::write_some(std::string_view text, std::size_t& written) {
  const WithoutSigpipe quiet;
  const ssize_t n = ::write(to_, text.data() + written, std::min(kPieceBytes, text.size() - written));
  if (n > 0) written += static_cast<std::size_t>(n);
  // Its end is told by its output, where there may be answers yet.
  if (n < 0 && errno != EAGAIN && errno != EINTR) written = text.size();
}

void LineProcess::read_some(std::vector<std::string>& answers) {
  std::array<char, kPieceBytes> piece;
  const ssize_t n = ::read(from_, piece.data(), piece.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    closed_ = true;
    return;
  }
  unfinished_.append(piece.data(), static_cast<std::size_t>(n));
  std::size_t begin = 0;
  for (std::size_t stop; (stop = unfinished_.find('\n', begin)) != std::string::npos; begin = stop + 1)
    answers.push_back(unfinished_.substr(begin, stop - begin));
  unfinished_.erase(0, begin);
  if (unfinished_.size() > kLongestAnswer)
    throw InputError(
        "{}: wrote more than {} bytes without the end of a line, \"{}\"; expected one number "
        "a line",
        printable(command_), kLongestAnswer, printable(unfinished_, 40));
}

void LineProcess::fail_ended(std::size_t answered, std::size_t asked) {
  int status = 0;
  close_if_open(to_);
  const bool ended = wait_for(pid_, kGraceSeconds, status);
  if (ended) pid_ = -1;
  throw InputError("{}: {} after {} of {} answers; expected to go on until the end of its input",
                   printable(command_), ended ? how_it_ended(status) : "closed its output", answered, asked);
}

void LineProcess::fail_unasked() {
  closed_ = true;
  throw InputError("{}: wrote more lines than it was given; expected one number for each",
                   printable(command_));
}

void LineProcess::fail_silent(std::size_t answered, std::size_t asked) {
  closed_ = true;
  throw InputError(
      "{}: no answer for {:g} seconds, after {} of {}; does it write its output at the end of every line?",
      printable(command_), seconds_, answered, asked);
}

std::vector<std::string> LineProcess::ask(std::span<const std::string> lines) {
  if (closed_ || pid_ < 0) throw InputError("{}: has ended and cannot be asked again", printable(command_));
  std::string text;
  for (const std::string& line : lines) {
    text += line;
    text += '\n';
  }
  std::vector<std::string> answers;
  answers.reserve(lines.size());
  read_some(answers);  // what it said unasked would be taken for answers
  if (!answers.empty() || !unfinished_.empty()) fail_unasked();
  std::size_t written = 0;
  Stopwatch silent;
  while (answers.size() < lines.size()) {
    std::array<pollfd, 2> ends = {{{from_, POLLIN, 0}, {to_, POLLOUT, 0}}};
    ::poll(ends.data(), written < text.size() ? 2 : 1, kPollMs);
    if (ends[1].revents != 0) write_some(text, written);
    const std::size_t before = answers.size();
    if (ends[0].revents != 0) read_some(answers);
    if (answers.size() > before) silent.restart();
    if (closed_ && answers.size() < lines.size()) fail_ended(answers.size(), lines.size());
    if (silent.seconds() > seconds_) fail_silent(answers.size(), lines.size());
  }
  if (answers.size() > lines.size() || !unfinished_.empty()) fail_unasked();
  return answers;
}

}  // namespace deeptail
