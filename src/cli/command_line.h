// The words that the program was called with: what repeats a result.
#pragma once

#include <string>
#include <vector>

namespace deeptail::cli {

void keep_command_line(int argc, const char* const* argv);
// "deeptail", whatever the path was, and the arguments.
const std::vector<std::string>& command_line();

}  // namespace deeptail::cli
