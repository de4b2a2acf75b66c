#include "cli/interrupt.h"

#include <csignal>

namespace deeptail::cli {

namespace {
volatile std::sig_atomic_t interrupt_flag = 0;
}

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupt_flag = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGUSR1, &action, nullptr);  // what Slurm is asked to send before the time is up
}

bool interrupted() { return interrupt_flag != 0; }

}  // namespace deeptail::cli
