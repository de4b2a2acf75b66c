#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

namespace deeptail::cli {

namespace {
volatile std::sig_atomic_t interrupt_seen = 0;

void leave(int) {
  // A terminal shows ^C, and perhaps progress: both go.
  constexpr std::string_view kOnTerminal = "\r\x1b[Kdeeptail: interrupted\n";
  const std::string_view sentence =
      ::isatty(STDERR_FILENO) != 0 ? kOnTerminal : kOnTerminal.substr(kOnTerminal.find('d'));
  [[maybe_unused]] const auto told = ::write(STDERR_FILENO, sentence.data(), sentence.size());
  ::_exit(kInterrupted);
}

void remember(int signal) {
  if (interrupt_seen != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // delivered when this returns
  }
  interrupt_seen = 1;
}
}  // namespace

void exit_on_interrupts() {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // nohup, a job in the background
    struct sigaction action {};
    action.sa_handler = leave;
    ::sigaction(signal, &action, nullptr);
  }
}

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGUSR1, &action, nullptr);  // what Slurm is asked to send before the time is up
}

bool interrupted() { return interrupt_seen != 0; }

Watch shown_until_interrupted(ProgressMeter& meter) {
  return [&meter](const Progress& progress) {
    meter.follow(progress);
    return !interrupted();
  };
}

}  // namespace deeptail::cli
