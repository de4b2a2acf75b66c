// deeptail model list | inspect | verify | logits | fetch | generate | tokenize | detokenize
#include <algorithm>
#include <filesystem>
#include <numeric>

#include "cli/commands.h"
#include "cli/model_fetch.h"
#include "cli/model_generate.h"
#include "cli/model_text.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/tokens.h"
#include "core/json.h"
#include "core/screen_text.h"
#include "core/tell.h"
#include "deeptail/model.h"

namespace deeptail::cli {

namespace {

namespace fs = std::filesystem;

// Largest errors that verify accepts: the engine's own bar against PyTorch.
constexpr double kMaxLogitError = 2e-4;

std::size_t parameter_count(const TensorMap& tensors) {
  std::size_t total = 0;
  for (const auto& [name, tensor] : tensors) total += tensor.size();
  return total;
}

// Calls use(config, name, folder) for each; a broken one does not hide the others.
void for_each_model(
    const std::vector<std::string>& folders,
    const std::function<void(const ModelConfig&, const std::string&, const std::string&)>& use) {
  for (const std::string& folder : folders) {
    try {
      use(read_config(folder), fs::path(folder).filename().string(), folder);
    } catch (const InputError& e) {
      tell(stderr, "deeptail: {}\n", screen_text(e.what(), kAnyWidth));
    }
  }
}

OrderedJson sizes_json(const ModelConfig& c) {
  return {{"n_layers", c.n_layers}, {"d_model", c.d_model}, {"n_heads", c.n_heads}, {"d_head", c.d_head},
          {"d_mlp", c.d_mlp},       {"n_ctx", c.n_ctx},     {"d_vocab", c.d_vocab}, {"eps", c.eps}};
}

// The kind of transformer, in words.
std::string kind_of(const ModelConfig& c) {
  const Architecture& a = c.arch;
  if (a == Architecture{}) return "pre-LN GELU transformer";
  constexpr const char* kMlps[] = {"GELU", "tanh GELU", "SwiGLU"};
  std::vector<std::string> parts = {a.norm == Architecture::Norm::kRms ? "RMS norm" : "layer norm",
                                    kMlps[static_cast<int>(a.mlp)]};
  parts.push_back(a.positions == Architecture::Positions::kLearned
                      ? "learned positions"
                      : fmt::format("rotary positions on {} of {} values", a.rotary_dims(), c.d_head));
  if (a.kv_groups > 1) parts.push_back(fmt::format("{} heads of keys and values", c.n_kv_heads()));
  if (a.residual == Architecture::Residual::kParallel) parts.push_back("attention beside the MLP");
  if (a.qk_norm) parts.push_back("norms of queries and keys");
  if (a.attention_scale == Architecture::AttentionScale::kOne) parts.push_back("scores not scaled");
  if (a.attention_scale == Architecture::AttentionScale::kByHeadAndLayer)
    parts.push_back("scores scaled by layer");
  if (a.tied_head) parts.push_back("tied head");
  return fmt::format("{} transformer ({})", c.family, fmt::join(parts, ", "));
}

void print_models(bool json) {
  const auto folders = deeptail::list_models();
  if (json) {
    OrderedJson rows = OrderedJson::array();
    for_each_model(folders, [&](const ModelConfig& c, const std::string& name, const std::string& folder) {
      OrderedJson row = {{"name", name}};
      row.update(sizes_json(c));
      row["folder"] = folder;
      rows.push_back(row);
    });
    return print_json(rows);
  }
  if (folders.empty()) {
    fmt::print("no models found in ./models, beside the program, or in $DEEPTAIL_HOME/models\n");
    return;
  }
  fmt::print("{:12} {:>6} {:>7} {:>7} {:>7} {:>6}  {}\n", "model", "layers", "d_model", "heads", "d_vocab",
             "n_ctx", "folder");
  for_each_model(folders, [](const ModelConfig& c, const std::string& name, const std::string& folder) {
    fmt::print("{:12} {:>6} {:>7} {:>7} {:>7} {:>6}  {}\n", screen_text(name), c.n_layers, c.d_model,
               c.n_heads, c.d_vocab, c.n_ctx, screen_text(folder, kAnyWidth));
  });
}

void inspect(const std::string& name, bool json) {
  const std::string folder = find_model(name);
  const Transformer model = Transformer::load(folder);  // checks everything
  const ModelConfig& c = model.config();
  const TensorMap tensors = read_tensors(folder);
  if (json) {
    OrderedJson out = {{"model", c.model_name}, {"folder", folder}, {"family", c.family}};
    out.update({{"kind", kind_of(c)}, {"parameters", parameter_count(tensors)}});
    out.update(sizes_json(c));
    out["tokenizer_file"] = c.tokenizer_file;
    OrderedJson rows = OrderedJson::array();
    for (const auto& [tensor_name, tensor] : tensors)
      rows.push_back({{"name", tensor_name}, {"dtype", name_of(tensor.dtype)}, {"shape", tensor.shape}});
    out["tensors"] = rows;
    return print_json(out);
  }
  fmt::print("{}: {}, {} parameters\n", screen_text(c.model_name), kind_of(c), parameter_count(tensors));
  fmt::print("n_layers {}  d_model {}  n_heads {}  d_head {}  d_mlp {}  n_ctx {}  d_vocab {}  eps {:g}\n",
             c.n_layers, c.d_model, c.n_heads, c.d_head, c.d_mlp, c.n_ctx, c.d_vocab, c.eps);
  if (!c.tokenizer_file.empty()) fmt::print("tokenizer {}\n", screen_text(c.tokenizer_file));
  for (const auto& [tensor_name, tensor] : tensors)
    fmt::print("  {:28} {:5} [{}]\n", screen_text(tensor_name), name_of(tensor.dtype),
               fmt::join(tensor.shape, ", "));
}

void verify(const std::string& name, bool json) {
  const std::string folder = find_model(name);
  const Transformer model = Transformer::load(folder);
  ThreadPool pool;
  const auto report = verify_model(model, folder, pool);
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
    fmt::print(
        "{}: loads; every tensor has its shape and is finite. No reference.json beside it to compare with.\n",
        screen_text(folder, kAnyWidth));
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
        "{}: the weights do not give the logits of reference.json: expected errors up to {:g} and every "
        "clear argmax equal",
        folder, kMaxLogitError);
}

struct ModelOptions {
  std::string name, text, bos = "auto";
  std::vector<std::string> tokens;
  bool json = false;
};

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
  add("list", "Models found by name")->callback([options] { print_models(options->json); });
  const auto with_folder = [&](const char* command, const char* help, void (*run)(const std::string&, bool)) {
    CLI::App* sub = add(command, help);
    sub->add_option("DIR", options->name, "Folder or name of a model, or hf:ORG/NAME")->required();
    sub->callback([options, run] { run(options->name, options->json); });
  };
  with_folder("inspect", "Sizes and tensors", inspect);
  with_folder("verify", "Compare with the logits in reference.json", verify);

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
