#include "cli/model_text.h"

#include <iostream>

#include "cli/output.h"
#include "cli/parse.h"
#include "cli/tokens.h"
#include "core/screen_text.h"

namespace deeptail::cli {

namespace {

struct TextOptions {
  std::string model, bos = "auto";
  std::vector<std::string> words;
  bool json = false;
};

// Each argument is one text; "-" stands for the lines of standard input.
void for_each_text(const TextOptions& o, const std::function<void(const std::string&)>& use) {
  for (const std::string& word : o.words) {
    if (word != "-") {
      use(word);
      continue;
    }
    for (std::string line; std::getline(std::cin, line);) use(line);
  }
}

void print_tokens(const Tokenizer& tokenizer, std::span<const TokenId> ids, const std::string& text) {
  OrderedJson tokens = OrderedJson::array();
  for (const TokenId id : ids) tokens.push_back(text_of_token(tokenizer, id));
  print_json({{"text", text}, {"ids", std::vector(ids.begin(), ids.end())}, {"tokens", tokens}});
}

void tokenize(const TextOptions& o) {
  const Bos bos = parse_bos(o.bos);
  const NamedTokenizer named = require_any_tokenizer(o.model);
  for_each_text(o, [&](const std::string& text) {
    const std::vector<TokenId> ids = encode_input(named.tokenizer, text, bos);
    if (o.json)
      print_tokens(named.tokenizer, ids, text);
    else
      fmt::print("{}\n", fmt::join(ids, " "));
  });
}

// Arguments are parts of one list; a line of standard input is a list of its own.
void detokenize(const TextOptions& o) {
  const NamedTokenizer named = require_any_tokenizer(o.model);
  const auto tell_text = [&](const std::string& list) {
    const std::vector<TokenId> ids = parse_ids(list, "IDS");
    const std::string text = named.tokenizer.decode(ids);
    if (o.json)
      print_tokens(named.tokenizer, ids, text);
    else
      fmt::print("{}\n", screen_text(text, kAnyWidth));
  };
  if (o.words == std::vector<std::string>{"-"}) return for_each_text(o, tell_text);
  tell_text(fmt::format("{}", fmt::join(o.words, " ")));
}

}  // namespace

void add_model_text(CLI::App& model) {
  const auto o = std::make_shared<TextOptions>();
  const auto add = [&](const char* command, const char* help, const char* words, const char* what,
                       void (*run)(const TextOptions&)) {
    CLI::App* sub = model.add_subcommand(command, help);
    sub->add_option("--model", o->model, "Folder or name of a model, or a tokenizer.json")->required();
    sub->add_option(words, o->words, what)->required();
    sub->add_flag("--json", o->json, "Machine-readable output, with each token's text");
    sub->callback([o, run] { run(*o); });
    return sub;
  };
  CLI::App* to_ids = add("tokenize", "Text to token ids", "TEXT",
                         "Texts, one line of ids each; -: the lines of standard input", tokenize);
  to_ids->add_option("--bos", o->bos, kBosHelp)->capture_default_str();
  add("detokenize", "Token ids to text", "IDS",
      "Ids, separated by spaces or commas; -: one list on each line of standard input", detokenize);
}

}  // namespace deeptail::cli
