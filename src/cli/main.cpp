#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include "cli/build_info.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/hints.h"
#include "cli/interrupt.h"
#include "cli/parse.h"
#include "cli/streams.h"
#include "core/screen_text.h"
#include "core/tell.h"
#include "deeptail/core.h"

namespace {

enum ExitCode { kOk = 0, kInternal = 1, kUsage = 2 };

// CLI11 would only say that it could not convert, and take nan for a number.
void check_values(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands(nullptr)) check_values(*command);
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_name() == "UINT") option->check(deeptail::cli::whole_number_mistake);
    if (option->get_type_name() == "FLOAT") option->check(deeptail::cli::number_mistake);
    // A prompt may be empty: the model begins on its own.
    if (option->get_type_name() == "PROMPT") continue;
    if (!option->get_lnames().empty() && option->get_items_expected_min() > 0)
      option->check(deeptail::cli::empty_mistake);
  }
}

int run(int argc, char** argv) {
  CLI::App app{"deeptail: how likely is it that this language model says that?", "deeptail"};
  app.set_version_flag("--version", deeptail::cli::version_text());
  app.require_subcommand(1);

  deeptail::cli::add_estimate(app);
  deeptail::cli::add_forecast(app);
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
  deeptail::cli::arrange_help(app);
  if (argc < 2) {
    deeptail::cli::print_help(app);
    return kUsage;
  }
  deeptail::cli::keep_command_line(argc, argv);
  deeptail::cli::refuse_unknown_command(app, {argv + 1, argv + argc});
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_name() == "CallForHelp") {
      deeptail::cli::print_help(app);
      return kOk;
    }
    if (e.get_exit_code() == 0) return app.exit(e);  // --version
    deeptail::cli::refuse_unknown_words(app);
    throw deeptail::InputError("{}", e.what());
  }
  return kOk;
}

void tell_mistake(std::string_view sentence) {
  deeptail::tell(stderr, "deeptail: {}\n", deeptail::screen_text(sentence, deeptail::kAnyWidth));
}

// What a user can act on, told in one sentence.
int told_run(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const deeptail::InputError& e) {
    tell_mistake(deeptail::cli::sentence_of(e));
    return kUsage;
  } catch (const std::filesystem::filesystem_error& e) {
    tell_mistake(fmt::format("{}: {}", e.path1().string(), e.code().message()));
    return kUsage;
  } catch (const deeptail::cli::Stopped& e) {
    tell_mistake(e.what());
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
