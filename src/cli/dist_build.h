#pragma once

#include <CLI/CLI.hpp>

namespace deeptail::cli {

// deeptail dist build | from-text
void add_dist_build(CLI::App& dist);

}  // namespace deeptail::cli
