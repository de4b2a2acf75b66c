// The help of the whole program, and what is said of words that it does not know.
#pragma once

#include <CLI/CLI.hpp>
#include <span>

namespace deeptail::cli {

// Puts the commands into groups, an example below the help of each, and the exit codes below that of all.
void arrange_help(CLI::App& app);
// Of the command that was asked about, in lines that fit the terminal.
void print_help(const CLI::App& app);

// Throw InputError with the nearest name, where CLI11 would only say that a subcommand is required or that
// an argument was not expected. words: what follows the command's own name.
void refuse_unknown_command(const CLI::App& app, std::span<char* const> words);
void refuse_unknown_words(const CLI::App& app);  // after a parse that failed

}  // namespace deeptail::cli
