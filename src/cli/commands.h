// The table of subcommands: one file each, one line each in main.cpp.
#pragma once

#include <CLI/CLI.hpp>

namespace deeptail::cli {

// Each adds its subcommand to the app: options bound to a struct, and a callback that runs it. A callback
// throws InputError for the user's mistakes (exit code 2).
void add_activations(CLI::App& app);
void add_bench(CLI::App& app);
void add_completion(CLI::App& app);
void add_manual(CLI::App& app);
void add_model(CLI::App& app);
void add_dist(CLI::App& app);
void add_estimate(CLI::App& app);
void add_forecast(CLI::App& app);
void add_loss(CLI::App& app);
void add_report(CLI::App& app);
void add_selftest(CLI::App& app);
void add_spb(CLI::App& app);
void add_truth(CLI::App& app);

}  // namespace deeptail::cli
