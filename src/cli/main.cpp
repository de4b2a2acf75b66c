#include <algorithm>
#include <exception>
#include <filesystem>
#include <new>
#include <span>
#include <system_error>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/parse.h"
#include "cli/streams.h"
#include "core/json.h"
#include "core/tell.h"
#include "deeptail/core.h"

namespace {

enum ExitCode { kOk = 0, kInternal = 1, kUsage = 2 };

// CLI11 would only say that a subcommand is required. words: what follows the command's own name.
void refuse_unknown_command(const CLI::App& app, std::span<char* const> words) {
  if (app.get_require_subcommand_min() == 0 || words.empty() || words[0][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == words[0]) return refuse_unknown_command(*command, words.subspan(1));
    names.push_back(command->get_name());
  }
  throw deeptail::InputError("unknown command \"{}\"; expected one of {}", deeptail::printable(words[0]),
                             fmt::join(names, ", "));
}

// CLI11 would only say that it could not convert, and take nan for a number.
void check_values(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands(nullptr)) check_values(*command);
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_name() == "UINT") option->check(deeptail::cli::whole_number_mistake);
    if (option->get_type_name() == "FLOAT") option->check(deeptail::cli::number_mistake);
    if (!option->get_lnames().empty() && option->get_items_expected_min() > 0)
      option->check(deeptail::cli::empty_mistake);
  }
}

int run(int argc, char** argv) {
  CLI::App app{"deeptail: how likely is it that this language model says that?", "deeptail"};
  app.set_version_flag("--version", std::string(deeptail::kVersion));
  app.require_subcommand(1);

  deeptail::cli::add_estimate(app);
  deeptail::cli::add_truth(app);
  deeptail::cli::add_model(app);
  deeptail::cli::add_dist(app);
  deeptail::cli::add_activations(app);
  deeptail::cli::add_bench(app);
  deeptail::cli::add_report(app);
  deeptail::cli::add_loss(app);
  deeptail::cli::add_spb(app);
  deeptail::cli::add_selftest(app);
  deeptail::cli::add_completion(app);
  deeptail::cli::add_manual(app);

  check_values(app);

  refuse_unknown_command(app, {argv + 1, argv + std::max(argc, 1)});
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const bool asked_for_help = e.get_exit_code() == 0;
    if (asked_for_help) return app.exit(e);
    deeptail::tell(stderr, "deeptail: {}\n", e.what());
    return kUsage;
  }
  return kOk;
}

// Names in a message may come from files, and a terminal would obey control characters.
void tell_mistake(std::string_view sentence) {
  std::string text;
  for (const char c : sentence) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    text += control ? deeptail::printable({&c, 1}) : std::string(1, c);
  }
  deeptail::tell(stderr, "deeptail: {}\n", text);
}

// What a user can act on, told in one sentence.
int told_run(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const deeptail::InputError& e) {
    tell_mistake(e.what());
    return kUsage;
  } catch (const std::filesystem::filesystem_error& e) {
    tell_mistake(fmt::format("{}: {}", e.path1().string(), e.code().message()));
    return kUsage;
  } catch (const deeptail::cli::Stopped& e) {
    deeptail::tell(stderr, "deeptail: {}\n", e.what());
    return e.exit_code();
  }
}

}  // namespace

int main(int argc, char** argv) {
  deeptail::cli::prepare_streams();
  deeptail::cli::exit_on_interrupts();
  try {
    const int code = told_run(argc, argv);
    deeptail::cli::flush_output();
    return code;
  } catch (const std::system_error& e) {
    const bool output = std::ferror(stdout) != 0;  // a result that nobody has is a failure
    deeptail::tell(stderr, "deeptail: {}: {}\n", output ? "standard output: cannot write" : "internal error",
                   output ? e.code().message() : e.what());
    return output ? kUsage : kInternal;
  } catch (const std::bad_alloc&) {
    deeptail::tell(stderr, "deeptail: out of memory\n");
    return kInternal;
  } catch (const std::exception& e) {
    deeptail::tell(stderr, "deeptail: internal error: {}\n", e.what());
    return kInternal;
  }
}
