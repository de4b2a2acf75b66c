// deeptail completion: scripts for bash, zsh and fish, from the tree of commands.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command_tree.h"
#include "deeptail/core.h"

namespace deeptail::cli {

namespace {

std::vector<std::string> command_names(const CommandNode& node) {
  std::vector<std::string> names;
  for (const CommandNode& command : node.commands) names.push_back(command.path.back());
  return names;
}

// What may follow a command: its commands and its flags.
std::vector<std::string> words_after(const CommandNode& node) {
  std::vector<std::string> words = command_names(node);
  for (const CommandOption& option : node.options)
    if (!option.positional) words.push_back(option.name);
  return words;
}

std::string key_of(const CommandNode& node) { return fmt::format("{}", fmt::join(node.path, " ")); }

// `case` branches "truth show") <action>, one per command. The words hold no quotes: they are names and flags.
template <class Action>
std::string branches(const CommandNode& root, const Action& action) {
  std::string out;
  for (const CommandNode* node : flattened(root))
    out += fmt::format("    \"{}\") {} ;;\n", key_of(*node), action(*node));
  return out;
}

// Follows the words typed so far down the tree, into the variable `at`.
std::string walk(const CommandNode& root) {
  std::vector<std::string> keys;
  for (const CommandNode* node : flattened(root))
    if (!node->path.empty()) keys.push_back(fmt::format("\"{}\"", key_of(*node)));
  return fmt::format("    case \"${{at:+$at }}$word\" in\n      {}) at=\"${{at:+$at }}$word\" ;;\n    esac\n",
                     fmt::join(keys, " | "));
}

// Names that flags take, asked of the program itself, so that a user's own are among them.
constexpr const char* kModels = "$(deeptail model list 2>/dev/null | awk 'NR > 1 {print $1}')";
constexpr const char* kDistributions = "$(deeptail dist list 2>/dev/null | awk 'NR > 1 {print $1}')";

std::string bash_script(const CommandNode& root) {
  return fmt::format(
      "# bash completion of deeptail\n"
      "_deeptail() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} at='' word words=''\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n{}  done\n"
      "  case \"$before\" in\n"
      "    --model) COMPREPLY=($(compgen -W \"{}\" -- \"$current\")); return ;;\n"
      "    --dist) COMPREPLY=($(compgen -W \"{}\" -- \"$current\")); return ;;\n"
      "  esac\n"
      "  case \"$at\" in\n{}  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "}}\n"
      "complete -o default -F _deeptail deeptail\n",
      walk(root), kModels, kDistributions, branches(root, [](const CommandNode& node) {
        return fmt::format("words='{}'", fmt::join(words_after(node), " "));
      }));
}

std::string zsh_script(const CommandNode& root) {
  return fmt::format(
      "#compdef deeptail\n"
      "_deeptail() {{\n"
      "  local at='' word\n"
      "  for word in ${{words[2,CURRENT-1]}}; do\n{}  done\n"
      "  case \"${{words[CURRENT-1]}}\" in\n"
      "    --model) compadd -- ${{(f)\"{}\"}}; return ;;\n"
      "    --dist) compadd -- ${{(f)\"{}\"}}; return ;;\n"
      "  esac\n"
      "  case \"$at\" in\n{}  esac\n"
      "  _files\n"
      "}}\n"
      "compdef _deeptail deeptail\n",
      walk(root), kModels, kDistributions, branches(root, [](const CommandNode& node) {
        return fmt::format("compadd -- {}", fmt::join(words_after(node), " "));
      }));
}

// Single-quoted for fish.
std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "'";
}

std::string fish_script(const CommandNode& root) {
  std::string out = "# fish completion of deeptail\n";
  for (const CommandNode* node : flattened(root)) {
    std::string condition = "true";
    for (const std::string& name : node->path) condition += "; and __fish_seen_subcommand_from " + name;
    const std::vector<std::string> below = command_names(*node);
    if (!below.empty())
      condition += fmt::format("; and not __fish_seen_subcommand_from {}", fmt::join(below, " "));
    for (const CommandNode& command : node->commands)
      out += fmt::format("complete -c deeptail -f -n '{}' -a {} -d {}\n", condition, command.path.back(),
                         fish_quoted(command.description));
    for (const CommandOption& option : node->options)
      if (!option.positional)
        out += fmt::format("complete -c deeptail -n '{}' -l {}{} -d {}\n", condition, option.name.substr(2),
                           option.value.empty() ? "" : " -r", fish_quoted(option.description));
  }
  return out;
}

}  // namespace

std::string completion_script(const CommandNode& root, const std::string& shell) {
  if (shell == "bash") return bash_script(root);
  if (shell == "zsh") return zsh_script(root);
  if (shell == "fish") return fish_script(root);
  throw InputError("shell \"{}\": expected bash, zsh or fish", shell);
}

void add_completion(CLI::App& app) {
  auto* command =
      app.add_subcommand("completion", "Print a script that completes commands and flags in a shell");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")->required();
  command->callback([&app, shell] { fmt::print("{}", completion_script(command_tree(app), *shell)); });
}

}  // namespace deeptail::cli
