// A program that is kept running and answers every line it reads with one line.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace deeptail {

// Run by /bin/sh -c, in a process group of its own, so that Ctrl-C reaches it only through the end of its
// input; what it says on stderr goes where this program's goes. Not for several threads at a time.
class LineProcess {
 public:
  // seconds: the longest it may take for an answer. Throws InputError when no process can be made.
  LineProcess(std::string command, double seconds);
  // Closes its input and waits a little while before the whole group is ended.
  ~LineProcess();
  LineProcess(const LineProcess&) = delete;
  LineProcess& operator=(const LineProcess&) = delete;

  // Lines without their ends; one answer for each, in order. Writes and reads at the same time, so that no
  // batch is too large. Throws InputError when the program ends, is silent for too long or says more than
  // it was asked; it is not asked again after that.
  std::vector<std::string> ask(std::span<const std::string> lines);

 private:
  void write_some(std::string_view text, std::size_t& written);
  void read_some(std::vector<std::string>& answers);
  [[noreturn]] void fail_ended(std::size_t answered, std::size_t asked);
  [[noreturn]] void fail_silent(std::size_t answered, std::size_t asked);
  [[noreturn]] void fail_unasked();
  void end();

  std::string command_;
  double seconds_;
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;  // our ends of its stdin and stdout
  bool closed_ = false;      // its stdout
  std::string unfinished_;   // what it said of its next line
};

}  // namespace deeptail
