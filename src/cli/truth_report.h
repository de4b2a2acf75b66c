// Counts for people and for programs.
#pragma once

#include <CLI/CLI.hpp>

#include "deeptail/truth.h"

namespace deeptail::cli {

void show_truth(const Truth& truth, bool json);
void show_events(const EventCounts& counts, bool json);
// The subcommands about files.
void add_truth_files(CLI::App& truth);

void show_comparison(const Truth& a, const Truth& b, bool json);

}  // namespace deeptail::cli
