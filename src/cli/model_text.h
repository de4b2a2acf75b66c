// deeptail model tokenize and detokenize.
#pragma once

#include <CLI/CLI.hpp>

namespace deeptail::cli {

void add_model_text(CLI::App& model);

}  // namespace deeptail::cli
