#include "cli/command_line.h"

namespace deeptail::cli {

namespace {
std::vector<std::string> kept_words = {"deeptail"};
}  // namespace

void keep_command_line(int argc, const char* const* argv) {
  kept_words = {"deeptail"};
  for (int i = 1; i < argc; ++i) kept_words.emplace_back(argv[i]);
}

const std::vector<std::string>& command_line() { return kept_words; }

}  // namespace deeptail::cli
