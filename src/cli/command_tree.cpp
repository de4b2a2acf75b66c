#include "cli/command_tree.h"

#include <fmt/format.h>

namespace deeptail::cli {

namespace {

CommandOption option_of(const CLI::Option& option) {
  if (option.get_positional())
    return {option.get_name(true, false), option.get_type_name(), option.get_description(), true};
  const std::string value = option.get_items_expected_max() == 0 ? "" : option.get_type_name();
  return {"--" + option.get_lnames().front(), value, option.get_description(), false};
}

CommandNode node_of(const CLI::App& app, std::vector<std::string> path) {
  CommandNode node{
      .path = std::move(path), .description = app.get_description(), .options = {}, .commands = {}};
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional() || !option->get_lnames().empty()) node.options.push_back(option_of(*option));
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    std::vector<std::string> below = node.path;
    below.push_back(command->get_name());
    node.commands.push_back(node_of(*command, std::move(below)));
  }
  return node;
}

void flatten(const CommandNode& node, std::vector<const CommandNode*>& out) {
  out.push_back(&node);
  for (const CommandNode& command : node.commands) flatten(command, out);
}

}  // namespace

CommandNode command_tree(const CLI::App& app) { return node_of(app, {}); }

std::vector<const CommandNode*> flattened(const CommandNode& root) {
  std::vector<const CommandNode*> out;
  flatten(root, out);
  return out;
}

}  // namespace deeptail::cli
