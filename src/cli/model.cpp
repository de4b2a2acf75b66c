// deeptail model list | inspect | verify | logits
#include <algorithm>
#include <filesystem>
#include <numeric>

#include "cli/commands.h"
#include "cli/parse.h"
#include "cli/tokens.h"
#include "core/json.h"
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

void print_models() {
  const auto folders = deeptail::list_models();
  if (folders.empty()) {
    fmt::print("no models found in ./models, beside the program, or in $DEEPTAIL_HOME/models\n");
    return;
  }
  fmt::print("{:12} {:>6} {:>7} {:>7} {:>7} {:>6}  {}\n", "model", "layers", "d_model", "heads", "d_vocab",
             "n_ctx", "folder");
  for (const std::string& folder : folders) {
    try {
      const ModelConfig c = read_config(folder);
      const std::string name = fs::path(folder).filename().string();
      fmt::print("{:12} {:>6} {:>7} {:>7} {:>7} {:>6}  {}\n", name, c.n_layers, c.d_model, c.n_heads,
                 c.d_vocab, c.n_ctx, folder);
    } catch (const InputError& e) {  // a broken one does not hide the others
      tell(stderr, "deeptail: {}\n", e.what());
    }
  }
}

void inspect(const std::string& name) {
  const std::string folder = find_model(name);
  const Transformer model = Transformer::load(folder);  // checks everything
  const ModelConfig& c = model.config();
  const TensorMap tensors = read_tensors(folder);
  fmt::print("{}: pre-LN GELU transformer, {} parameters\n", printable(c.model_name),
             parameter_count(tensors));
  fmt::print("n_layers {}  d_model {}  n_heads {}  d_head {}  d_mlp {}  n_ctx {}  d_vocab {}  eps {:g}\n",
             c.n_layers, c.d_model, c.n_heads, c.d_head, c.d_mlp, c.n_ctx, c.d_vocab, c.eps);
  if (!c.tokenizer_file.empty()) fmt::print("tokenizer {}\n", c.tokenizer_file);
  for (const auto& [tensor_name, tensor] : tensors)
    fmt::print("  {:28} {:5} [{}]\n", printable(tensor_name), name_of(tensor.dtype),
               fmt::join(tensor.shape, ", "));
}

void verify(const std::string& name) {
  const std::string folder = find_model(name);
  const Transformer model = Transformer::load(folder);
  ThreadPool pool;
  const auto report = verify_model(model, folder, pool);
  if (!report) {
    fmt::print(
        "{}: loads; every tensor has its shape and is finite. No reference.json beside it to compare with.\n",
        folder);
    return;
  }
  fmt::print(
      "{}: {} logits of {} inputs: max error {:.2e}, mean error {:.2e}; argmax equal on {} of {} (gap > "
      "1e-3: {} of {})\n",
      folder, report->n_logits, report->n_inputs, report->max_error, report->mean_error, report->argmax_equal,
      report->n_inputs, report->argmax_clear_equal, report->argmax_clear);
  if (report->max_error > kMaxLogitError || report->argmax_clear_equal < report->argmax_clear)
    throw InputError(
        "{}: the weights do not give the logits of reference.json: expected errors up to {:g} and every "
        "clear argmax equal",
        folder, kMaxLogitError);
}

void print_logits(const std::string& name, const std::string& ids, bool json) {
  const std::string folder = find_model(name);
  const Transformer model = Transformer::load(folder);
  const ModelConfig& c = model.config();
  const std::vector<TokenId> tokens = parse_ids(ids, "--tokens");
  ThreadPool pool;
  AlignedVector<float> resid(c.d_model), all(c.d_vocab);
  final_residuals(model, {tokens, tokens.size()}, pool, {resid.data(), c.d_model});
  logits(model.head(), 1, {resid.data(), c.d_model}, pool, {all.data(), c.d_vocab});
  const std::size_t said = best_of(c.d_vocab, all.data()).index;
  if (json) {
    const Json out = {{"logits", std::vector<float>(all.begin(), all.end())}, {"argmax", said}};
    fmt::print("{}\n", json_text(out));
    return;
  }
  const auto tokenizer = tokenizer_of(c, folder);
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
  CLI::App* model = app.add_subcommand("model", "List, inspect, verify and run models");
  model->require_subcommand(1);
  model->add_subcommand("list", "Models found by name")->callback(print_models);

  struct Options {
    std::string name, tokens;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  const auto with_folder = [&](const char* command, const char* help, void (*run)(const std::string&)) {
    CLI::App* sub = model->add_subcommand(command, help);
    sub->add_option("DIR", options->name, "Folder or name of a model")->required();
    sub->callback([options, run] { run(options->name); });
  };
  with_folder("inspect", "Sizes and tensors", inspect);
  with_folder("verify", "Compare with the logits in reference.json", verify);

  CLI::App* sub = model->add_subcommand("logits", "Logits of the last position");
  sub->add_option("--model", options->name, "Folder or name of a model")->required();
  sub->add_option("--tokens", options->tokens, "Token ids, separated by commas")->required();
  sub->add_flag("--json", options->json, "Machine-readable output");
  sub->callback([options] { print_logits(options->name, options->tokens, options->json); });
}

}  // namespace deeptail::cli
