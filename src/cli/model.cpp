// deeptail model list | inspect | verify | logits | fetch | generate | tokenize | detokenize
#include <algorithm>
#include <filesystem>
#include <numeric>

#include "cli/commands.h"
#include "cli/model_fetch.h"
#include "cli/model_generate.h"
#include "cli/model_inspect.h"
#include "cli/model_text.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/read_files.h"
#include "cli/tokens.h"
#include "core/json.h"
#include "core/screen_text.h"
#include "core/write_file.h"
#include "deeptail/model.h"
#include "tensors/gguf.h"

namespace deeptail::cli {

namespace {

// Largest errors that verify accepts: the engine's own bar against PyTorch.
constexpr double kMaxLogitError = 2e-4;

struct ModelOptions {
  std::string name, text, bos = "auto", reference, make;
  std::vector<std::string> tokens;
  bool json = false;
};

void make(const Transformer& model, const ModelOptions& o, ThreadPool& pool) {
  if (!o.reference.empty()) throw InputError("expected --make or --reference, found both");
  ReadFiles reads;
  reads.add_folder(find_model(o.name));
  reads.add_file(find_model(o.name));
  // One that is there already may be another program's: it stays.
  reads.refuse_output(o.make);
  write_file(o.make, make_reference(model, pool));
  if (o.json)
    print_json({{"reference", o.make}});
  else
    fmt::print("{}: written; `deeptail model verify --reference` compares with it\n",
               screen_text(o.make, kAnyWidth));
}

void verify(const ModelOptions& o) {
  const std::string folder = find_model(o.name);
  const Transformer model = Transformer::load(folder);
  ThreadPool pool;
  if (!o.make.empty()) return make(model, o, pool);
  const std::string path = o.reference.empty() ? reference_path(folder) : o.reference;
  const auto report = verify_model(model, path, pool);
  if (!report && !o.reference.empty()) throw InputError("{}: there is no such file", o.reference);
  const bool json = o.json;
  const bool good =
      !report || (report->max_error <= kMaxLogitError && report->argmax_clear_equal == report->argmax_clear);
  if (json) {
    OrderedJson out = {{"folder", folder}, {"reference", report.has_value()}, {"agrees", good}};
    if (report)
      out.update({{"inputs", report->n_inputs},
                  {"logits", report->n_logits},
                  {"max_error", report->max_error},
                  {"mean_error", report->mean_error},
                  {"argmax_equal", report->argmax_equal},
                  {"argmax_clear", report->argmax_clear},
                  {"argmax_clear_equal", report->argmax_clear_equal}});
    print_json(out);
  } else if (!report) {
    fmt::print("{}: loads; every tensor has its shape and is finite. No {} to compare with.\n",
               screen_text(folder, kAnyWidth),
               is_gguf_file(folder) ? "reference beside it" : "reference.json beside it");
  } else {
    fmt::print(
        "{}: {} logits of {} inputs: max error {:.2e}, mean error {:.2e}; argmax equal on {} of {} (gap > "
        "1e-3: {} of {})\n",
        screen_text(folder, kAnyWidth), report->n_logits, report->n_inputs, report->max_error,
        report->mean_error, report->argmax_equal, report->n_inputs, report->argmax_clear_equal,
        report->argmax_clear);
  }
  if (!good)
    throw InputError(
        "{}: the weights do not give the logits of {}: expected errors up to {:g} and every "
        "clear argmax equal",
        folder, std::filesystem::path(path).filename().string(), kMaxLogitError);
}

// The ids of --tokens, or those of the tokens of --text.
std::vector<TokenId> input_of(const ModelOptions& o, const std::optional<NamedTokenizer>& tokenizer) {
  if (o.tokens.empty() == o.text.empty())
    throw InputError("expected --tokens or --text, found {}", o.text.empty() ? "neither" : "both");
  if (!o.tokens.empty()) return parse_ids(fmt::format("{}", fmt::join(o.tokens, " ")), "--tokens");
  if (!tokenizer) throw InputError("--text: the model has no tokenizer; give ids with --tokens");
  return encode_input(tokenizer->tokenizer, o.text, parse_bos(o.bos));
}

void print_logits(const ModelOptions& o) {
  const std::string folder = find_model(o.name);
  const Transformer model = Transformer::load(folder);
  const ModelConfig& c = model.config();
  const auto tokenizer = tokenizer_of(c, folder);
  const std::vector<TokenId> tokens = input_of(o, tokenizer);
  ThreadPool pool;
  AlignedVector<float> resid(c.d_model), all(c.d_vocab);
  final_residuals(model, {tokens, tokens.size()}, pool, {resid.data(), c.d_model});
  logits(model.head(), 1, {resid.data(), c.d_model}, pool, {all.data(), c.d_vocab});
  const std::size_t said = best_of(c.d_vocab, all.data()).index;
  if (o.json) {
    const Json out = {{"logits", std::vector<float>(all.begin(), all.end())}, {"argmax", said}};
    fmt::print("{}\n", json_text(out));
    return;
  }
  std::vector<TokenId> order(c.d_vocab);
  std::iota(order.begin(), order.end(), 0);
  const std::size_t n_shown = std::min<std::size_t>(10, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n_shown), order.end(),
                    [&](TokenId a, TokenId b) {
                      const float x = all[static_cast<std::size_t>(a)], y = all[static_cast<std::size_t>(b)];
                      return x > y || (x == y && a < b);
                    });
  softmax(c.d_vocab, 1.0f, all.data());
  fmt::print("{:>7} {:>12}  {}\n", "id", "probability", "token");
  for (std::size_t i = 0; i < n_shown; ++i)
    fmt::print("{:>7} {:>12.4g}  {}\n", order[i], all[static_cast<std::size_t>(order[i])],
               shown(tokenizer, order[i]));
}

}  // namespace

void add_model(CLI::App& app) {
  CLI::App* model =
      app.add_subcommand("model", "List, fetch, inspect, verify and run models; text to ids and back");
  model->require_subcommand(1);
  const auto options = std::make_shared<ModelOptions>();
  const auto add = [&](const char* command, const char* help) {
    CLI::App* sub = model->add_subcommand(command, help);
    sub->add_flag("--json", options->json, "Machine-readable output");
    return sub;
  };
  add("list", "Models found by name, and those in the HuggingFace cache")->callback([options] {
    print_models(options->json);
  });
  const auto with_folder = [&](const char* command, const char* help, void (*run)(const ModelOptions&)) {
    CLI::App* sub = add(command, help);
    sub->add_option("DIR", options->name, "Folder or name of a model, or hf:ORG/NAME")->required();
    sub->callback([options, run] { run(*options); });
    return sub;
  };
  with_folder("inspect", "Family, sizes, memory, speed, what a GPU can do with it, and tensors",
              [](const ModelOptions& o) { inspect_model(o.name, o.json); });
  CLI::App* check = with_folder("verify", "Compare with the logits of a reference, or make one", verify);
  check->add_option("--reference", options->reference,
                    "Compare with this file instead of reference.json beside the model");
  check->add_option("--make", options->make, "Write the logits that are computed here to this file");

  CLI::App* sub = add("logits", "Logits of the last position");
  sub->add_option("--model", options->name, "Folder or name of a model, or hf:ORG/NAME")->required();
  sub->add_option("--tokens", options->tokens, "Token ids, separated by spaces or commas");
  sub->add_option(
      "--text", options->text,
      "Instead of ids: text. What goes before it is --bos: the zoo's tokenizer says nothing, so write "
      "<|BOS|> where the model expects it");
  sub->add_option("--bos", options->bos, kBosHelp)->capture_default_str();
  sub->callback([options] { print_logits(*options); });
  add_model_fetch(*model);
  add_model_generate(*model);
  add_model_text(*model);
}

}  // namespace deeptail::cli
