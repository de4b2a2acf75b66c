// deeptail manual: pages in roff, from the tree of commands.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/command_tree.h"
#include "deeptail/core.h"

namespace deeptail::cli {

namespace {

// A line that begins with a dot or a quote would be a request, and a backslash an escape.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string page_name(const CommandNode& command) {
  return command.path.empty() ? "deeptail" : fmt::format("deeptail-{}", fmt::join(command.path, "-"));
}

std::string synopsis(const CommandNode& command) {
  std::string out =
      fmt::format(".B deeptail{}{}\n", command.path.empty() ? "" : " ", fmt::join(command.path, " "));
  if (!command.commands.empty()) out += ".I COMMAND\n";
  for (const CommandOption& option : command.options)
    if (option.positional) out += fmt::format(".I {}\n", roff(option.name));
  return out + "[options]\n";
}

}  // namespace

std::string manual_page(const CommandNode& command, std::string_view version) {
  const std::string name = page_name(command);
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string out =
      fmt::format(".TH {} 1 \"\" \"deeptail {}\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}", roff(upper),
                  version, roff(name), roff(command.description), synopsis(command));
  if (!command.commands.empty()) out += ".SH COMMANDS\n";
  for (const CommandNode& below : command.commands)
    out += fmt::format(".TP\n.B {}\n{}\n", roff(below.path.back()), roff(below.description));
  if (!command.options.empty()) out += ".SH OPTIONS\n";
  for (const CommandOption& option : command.options)
    out += fmt::format(".TP\n.B {}{}{}\n{}\n", roff(option.name), option.value.empty() ? "" : " ",
                       roff(option.value), roff(option.description));
  out +=
      ".SH EXIT STATUS\n0: done; 1: a fault of deeptail; 2: a mistake in the command or its files, told in "
      "one sentence; 3: "
      "interrupted, what was finished is kept; 4: the budget was spent.\n";
  return out;
}

void add_manual(CLI::App& app) {
  auto* command = app.add_subcommand("manual", "Print a manual page: deeptail manual estimate | man -l -");
  auto path = std::make_shared<std::vector<std::string>>();
  command->add_option("command", *path, "of which command; none: of deeptail itself");
  command->callback([&app, path] {
    const CommandNode root = command_tree(app);
    for (const CommandNode* node : flattened(root))
      if (node->path == *path) return fmt::print("{}", manual_page(*node, kVersion));
    throw InputError("there is no command \"{}\"; `deeptail --help` shows them", fmt::join(*path, " "));
  });
}

}  // namespace deeptail::cli
