// The subcommands of `deeptail bench`, one file each.
#pragma once

#include <CLI/CLI.hpp>

namespace deeptail::cli {

void add_bench_run(CLI::App& bench);
void add_bench_export(CLI::App& bench);
void add_bench_tune(CLI::App& bench);

}  // namespace deeptail::cli
