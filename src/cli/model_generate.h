// deeptail model generate.
#pragma once

#include <CLI/CLI.hpp>

namespace deeptail::cli {

void add_model_generate(CLI::App& model);

}  // namespace deeptail::cli
