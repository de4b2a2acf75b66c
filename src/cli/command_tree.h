// The tree of commands as data: what shell completion and the manual pages are made from.
#pragma once

#include <string>
#include <vector>

#include "cli/commands.h"

namespace deeptail::cli {

struct CommandOption {
  std::string name;   // --model; a positional: TEXT
  std::string value;  // TEXT, UINT ...; empty for a flag
  std::string description;
  bool positional = false;
};

struct CommandNode {
  std::vector<std::string> path;  // {"truth", "show"}; empty for deeptail itself
  std::string description;
  std::vector<CommandOption> options;
  std::vector<CommandNode> commands;
};

CommandNode command_tree(const CLI::App& app);
// All nodes, parents first.
std::vector<const CommandNode*> flattened(const CommandNode& root);

// Scripts for the shell: bash, zsh or fish.
std::string completion_script(const CommandNode& root, const std::string& shell);
// A page in roff. version: of deeptail.
std::string manual_page(const CommandNode& command, std::string_view version);

}  // namespace deeptail::cli
