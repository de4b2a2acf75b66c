#include "cli/help.h"

#include "core/nearest.h"
#include "core/progress.h"
#include "core/screen_text.h"
#include "deeptail/core.h"

namespace deeptail::cli {

namespace {

constexpr std::size_t kNameColumns = 28;

constexpr struct {
  const char *group, *command;
} kCommandGroups[] = {{"Ask about a model", "estimate"},    {"Ask about a model", "forecast"},
                      {"Ask about a model", "model"},       {"Ask about a model", "dist"},
                      {"Ask about a model", "activations"}, {"Compare estimators", "truth"},
                      {"Compare estimators", "bench"},      {"Compare estimators", "report"},
                      {"Score estimates", "loss"},          {"Score estimates", "spb"},
                      {"The program itself", "selftest"},   {"The program itself", "completion"},
                      {"The program itself", "manual"}};

// Several for one command stand below each other.
constexpr struct {
  const char *command, *example;
} kExamples[] = {
    {"deeptail", "deeptail estimate --model dt-1l --dist hex --target 395"},
    {"deeptail estimate", "deeptail estimate --model dt-1l --dist hex --target 395"},
    {"deeptail estimate", "deeptail estimate --model dt-1l --dist hex --target 395 --target \" the\" --json"},
    {"deeptail estimate", "deeptail estimate --model dt-1l --dist caps --target 310 --method qld"},
    {"deeptail forecast",
     "deeptail forecast --model dt-1l --dist english --starts-with \" king\" --queries 1e4,1e6,1e9"},
    {"deeptail truth", "deeptail truth --model dt-1l --dist hex --samples 2^24 --seed 2 --out hex.json"},
    {"deeptail truth",
     "deeptail truth --model dt-1l --dist hex --contains abba --within 8 --samples 2^20 --out abba.json"},
    {"deeptail truth", "deeptail truth show dt-1l-hex"},
    {"deeptail truth merge", "deeptail truth merge hex-1.json hex-2.json --out hex.json"},
    {"deeptail truth show", "deeptail truth show dt-1l-hex"},
    {"deeptail truth compare", "deeptail truth compare hex.json truth/dt-1l-hex.json"},
    {"deeptail truth import",
     "deeptail truth import frequencies32-hex.pt --model-name gelu-1l --dist-name hex --out hex.json"},
    {"deeptail model", "deeptail model inspect dt-1l"},
    {"deeptail model list", "deeptail model list --json"},
    {"deeptail model inspect", "deeptail model inspect dt-1l"},
    {"deeptail model verify", "deeptail model verify dt-1l"},
    {"deeptail model logits", "deeptail model logits --model dt-1l --tokens 0,17,42"},
    {"deeptail model logits", "deeptail model logits --model dt-1l --text \"<|BOS|>The\""},
    {"deeptail model fetch", "deeptail model fetch hf:EleutherAI/pythia-70m"},
    {"deeptail model fetch", "deeptail model fetch hf:EleutherAI/pythia-70m@step1000"},
    {"deeptail model generate", "deeptail model generate --model dt-1l --prompt \"<|BOS|>The\" --count 3"},
    {"deeptail model generate",
     "deeptail model generate --model dt-1l --dist hex --within 5 --temperature 0.7 --top-p 0.9 --json"},
    {"deeptail model tokenize", "deeptail model tokenize --model dt-1l \"<|BOS|>To be\""},
    {"deeptail model tokenize",
     "deeptail model tokenize --model models/tokenizer.json --bos 0 --json \"To be\""},
    {"deeptail model detokenize", "deeptail model detokenize --model dt-1l 0 310"},
    {"deeptail dist", "deeptail dist sample hex --count 5 --text"},
    {"deeptail dist list", "deeptail dist list"},
    {"deeptail dist show", "deeptail dist show hex"},
    {"deeptail dist show", "deeptail dist show examples/laws/sums.json --model dt-1l"},
    {"deeptail dist sample", "deeptail dist sample hex --count 5 --seed 1 --text"},
    {"deeptail dist check", "deeptail dist check examples/laws/sums.json --model dt-1l"},
    {"deeptail dist build", "deeptail dist build hex --tokenizer models/tokenizer.json --out built-hex.json"},
    {"deeptail dist from-text",
     "deeptail dist from-text docs/estimate.md --tokenizer dt-1l --length 16 --out notes.json"},
    {"deeptail activations", "deeptail activations capture --model dt-1l --dist hex --out a.npy"},
    {"deeptail activations capture", "deeptail activations capture --model dt-1l --dist hex --out a.npy"},
    {"deeptail bench", "deeptail bench run suites/quick.toml --out runs/quick"},
    {"deeptail bench run", "deeptail bench run suites/quick.toml --dry-run"},
    {"deeptail bench run", "deeptail bench run suites/quick.toml --out runs/quick"},
    {"deeptail bench export", "deeptail bench export runs/quick --csv quick.csv"},
    {"deeptail bench tune", "deeptail bench tune --models dt-1l --dists hex --out tune.jsonl"},
    {"deeptail report", "deeptail report runs/quick --out report.html"},
    {"deeptail loss", "deeptail loss pairs.csv --profile oversight"},
    {"deeptail loss", "deeptail loss pairs.csv --by method,model"},
    {"deeptail spb", "deeptail spb alpha --ratio 3 --m0 2"},
    {"deeptail spb alpha", "deeptail spb alpha --ratio 3 --m0 2"},
    {"deeptail spb epsilon", "deeptail spb epsilon --alpha 2 --eta 0.05 --qmin 1e-9 --mmax 100"},
    {"deeptail spb table", "deeptail spb table --alpha 2 --m 2,10,100"},
    {"deeptail spb experiments", "deeptail spb experiments --out experiments"},
    {"deeptail selftest", "deeptail selftest --seed 1"},
    {"deeptail completion", "deeptail completion bash > deeptail.bash"},
    {"deeptail manual", "deeptail manual estimate | man -l -"}};

// "model logits"; nothing for the program itself.
std::string name_within(const CLI::App& app) {
  if (app.get_parent() == nullptr) return "";
  const std::string before = name_within(*app.get_parent());
  return before + (before.empty() ? "" : " ") + app.get_name();
}

std::string whole_name(const CLI::App& app) {
  const std::string name = name_within(app);
  return name.empty() ? "deeptail" : "deeptail " + name;
}

// A name and what it means, broken between words into a column beside it.
std::string two_columns(const std::string& name, std::string_view text, std::size_t width) {
  const std::size_t room = std::max<std::size_t>(width, kNameColumns + 22) - kNameColumns - 1;
  std::string out = "  " + name;
  if (name.size() + 3 > kNameColumns)
    out += "\n" + std::string(kNameColumns, ' ');
  else
    out += std::string(kNameColumns - name.size() - 2, ' ');
  while (display_width(text) > room) {
    const std::size_t space = text.rfind(' ', room);
    if (space == std::string_view::npos || space == 0) break;
    out += fmt::format("{}\n{}", text.substr(0, space), std::string(kNameColumns, ' '));
    text.remove_prefix(space + 1);
  }
  return fmt::format("{}{}\n", out, text);
}

class FittedFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool positional) const override {
    return two_columns(make_option_name(option, positional) + make_option_opts(option),
                       make_option_desc(option), terminal_width(stdout));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return two_columns(command->get_name(), command->get_description(), terminal_width(stdout));
  }
};

void arrange_command(CLI::App& app) {
  std::string examples;
  int n = 0;
  for (const auto& [command, example] : kExamples)
    if (whole_name(app) == command) examples += fmt::format("\n  {}", example), ++n;
  std::string text = fmt::format("Example{}:{}", n == 1 ? "" : "s", examples);
  if (app.get_parent() == nullptr)
    text +=
        "\n\n`deeptail COMMAND --help` explains a command and shows an example.\n\n"
        "Exit codes:\n"
        "  0  done\n"
        "  1  a fault of the program\n"
        "  2  bad usage or bad input, told in one sentence\n"
        "  3  interrupted; what is done is saved\n"
        "  4  the budget or the time was spent";
  if (n > 0) app.footer(text);
  app.formatter(std::make_shared<FittedFormatter>());
  for (CLI::App* command : app.get_subcommands(nullptr)) arrange_command(*command);
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  return flags;
}

}  // namespace

void arrange_help(CLI::App& app) {
  for (const auto& [group, command] : kCommandGroups) app.get_subcommand(command)->group(group);
  arrange_command(app);
}

void print_help(const CLI::App& app) {
  std::string text = app.help();
  for (std::size_t at; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
  fmt::print("{}", text);
}

void refuse_unknown_command(const CLI::App& app, std::span<char* const> words) {
  if (app.get_require_subcommand_min() == 0) return;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (!words.empty() && command->get_name() == words[0])
      return refuse_unknown_command(*command, words.subspan(1));
    names.push_back(command->get_name());
  }
  if (words.empty())
    throw InputError("{}: expected one of {}; `{} --help` explains them", name_within(app),
                     fmt::join(names, ", "), whole_name(app));
  if (words[0][0] == '-') return;
  throw InputError("unknown command {}; expected one of {}{}", quoted_text(words[0]), fmt::join(names, ", "),
                   did_you_mean(words[0], names));
}

void refuse_unknown_words(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) refuse_unknown_words(*command);
  for (const std::string& word : app.remaining()) {
    const bool flag = word.size() > 1 && word[0] == '-';
    const std::string name = flag ? word.substr(0, word.find('=')) : word;
    throw InputError("unknown {} {}; `{} --help` shows what there is{}", flag ? "flag" : "word",
                     quoted_text(name), whole_name(app), flag ? did_you_mean(name, flags_of(app)) : "");
  }
}

}  // namespace deeptail::cli
