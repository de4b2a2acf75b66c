// Ctrl-C, SIGTERM and SIGUSR1 as a request that long commands answer by saving their state.
#pragma once

#include <stdexcept>
#include <string>

#include "core/progress.h"

namespace deeptail::cli {

// A command ended before its work did, and what it has is saved. Exit code 3 for a signal, 4 for a spent
// budget.
class Stopped : public std::runtime_error {
 public:
  Stopped(int exit_code, const std::string& what) : std::runtime_error(what), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};
inline constexpr int kInterrupted = 3, kBudgetSpent = 4;

// As long as there is nothing to save: SIGINT, SIGTERM and SIGUSR1 end the program with exit code 3.
void exit_on_interrupts();
// From now on SIGINT, SIGTERM and SIGUSR1 only set a flag; the second one ends the program as usual.
void catch_interrupts();
bool interrupted();
// Shows what it is told, and stops when there was one.
Watch shown_until_interrupted(ProgressMeter& meter);

}  // namespace deeptail::cli
