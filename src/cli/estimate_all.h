// deeptail estimate --all: every token at once.
#pragma once

#include "cli/estimate_flags.h"
#include "core/progress.h"

namespace deeptail::cli {

void add_all_flags(CLI::App& command, AllOptions& options);
// Throws InputError for flags that do not go together with --all, or with its absence.
void check_all_flags(const EstimateOptions& options);
void run_on_all_tokens(const EstimateOptions& options, ThreadPool& pool, ProgressMeter& meter);

}  // namespace deeptail::cli
