// deeptail model fetch.
#pragma once

#include <CLI/CLI.hpp>

namespace deeptail::cli {

void add_model_fetch(CLI::App& model);

}  // namespace deeptail::cli
