#include "cli/model_inspect.h"

#include <algorithm>

#include "cli/output.h"
#include "cli/pass_rate.h"
#include "compute_cuda/limits.h"
#include "core/memory.h"
#include "core/screen_text.h"

namespace deeptail::cli {

OrderedJson sizes_json(const ModelConfig& c) {
  return {{"n_layers", c.n_layers}, {"d_model", c.d_model}, {"n_heads", c.n_heads}, {"d_head", c.d_head},
          {"d_mlp", c.d_mlp},       {"n_ctx", c.n_ctx},     {"d_vocab", c.d_vocab}, {"eps", c.eps}};
}

namespace {

std::size_t parameter_count(const TensorMap& tensors) {
  std::size_t total = 0;
  for (const auto& [name, tensor] : tensors) total += tensor.size();
  return total;
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

// Inputs of the length that the zoo's have, or what the model takes.
std::size_t usual_length(const ModelConfig& c) { return std::min<std::size_t>(33, c.n_ctx); }

// What --device cuda does with it, in words.
std::string on_cuda(const ModelConfig& c) {
  if (c.d_model % cuda::kModelMultiple != 0)
    return fmt::format("not taken: d_model {} is no multiple of {}", c.d_model, cuda::kModelMultiple);
  if (c.d_head > cuda::kMostHeadValues)
    return fmt::format("not taken: heads of {} values, at most {}", c.d_head, cuda::kMostHeadValues);
  if (cuda::has_fast_kernels(c.arch, c.d_model, c.n_heads, c.d_head, c.d_mlp))
    return fmt::format("fp16 with a second look for inputs of up to {} tokens, nearly fp32 up to {}",
                       std::min(c.n_ctx, cuda::kMostFastPositions), std::min(c.n_ctx, cuda::kMostPositions));
  if (cuda::has_wide_kernels(c.arch, c.d_model, c.n_heads, c.d_head, c.d_mlp))
    return fmt::format(
        "fp16 with a second look for inputs of up to {} tokens on compute capability 9.0, nearly fp32 up to "
        "{}",
        std::min(c.n_ctx, cuda::kMostFastPositions), std::min(c.n_ctx, cuda::kMostPositions));
  return fmt::format("nearly fp32, inputs of up to {} tokens", std::min(c.n_ctx, cuda::kMostPositions));
}

struct Inspected {
  std::size_t parameters = 0;
  double bytes = 0.0;   // of the weights as the CPU has them
  double passes = 0.0;  // a second
  std::size_t threads = 0;
};
Inspected measure(const Transformer& model, const TensorMap& tensors) {
  ThreadPool pool;
  const std::size_t n = parameter_count(tensors);
  return {.parameters = n,
          .bytes = sizeof(float) * static_cast<double>(n),
          .passes = passes_per_second(model, usual_length(model.config()), pool),
          .threads = pool.size()};
}

OrderedJson inspected_json(const ModelConfig& c, const std::string& folder, const Inspected& found,
                           const TensorMap& tensors) {
  OrderedJson out = {{"model", c.model_name}, {"folder", folder}, {"family", c.family}};
  out.update({{"kind", kind_of(c)}, {"parameters", found.parameters}});
  out.update(sizes_json(c));
  out["tokenizer_file"] = c.tokenizer_file;
  out["memory_bytes"] = found.bytes;
  out["forward_flops"] = forward_flops(c, usual_length(c));
  out["passes_per_second"] = found.passes;
  out["pass_tokens"] = usual_length(c);
  out["cuda"] = on_cuda(c);
  OrderedJson rows = OrderedJson::array();
  for (const auto& [tensor_name, tensor] : tensors)
    rows.push_back({{"name", tensor_name}, {"dtype", name_of(tensor.dtype)}, {"shape", tensor.shape}});
  out["tensors"] = rows;
  return out;
}

}  // namespace

void inspect_model(const std::string& name, bool json) {
  const std::string folder = find_model(name);
  const Transformer model = Transformer::load(folder);  // checks everything
  const ModelConfig& c = model.config();
  const TensorMap tensors = read_tensors(folder);
  const Inspected found = measure(model, tensors);
  if (json) return print_json(inspected_json(c, folder, found, tensors));
  fmt::print("{}: {}, {} parameters\n", screen_text(c.model_name), kind_of(c), found.parameters);
  fmt::print("n_layers {}  d_model {}  n_heads {}  d_head {}  d_mlp {}  n_ctx {}  d_vocab {}  eps {:g}\n",
             c.n_layers, c.d_model, c.n_heads, c.d_head, c.d_mlp, c.n_ctx, c.d_vocab, c.eps);
  if (!c.tokenizer_file.empty()) fmt::print("tokenizer {}\n", screen_text(c.tokenizer_file));
  const std::size_t length = usual_length(c);
  fmt::print("memory {} for the weights, in fp32\n", bytes_text(found.bytes));
  fmt::print("speed {:.3g} passes of {} tokens a second on {} threads, measured now; {:.2g} flops each\n",
             found.passes, length, found.threads, forward_flops(c, length));
  fmt::print("cuda {}\n", on_cuda(c));
  for (const auto& [tensor_name, tensor] : tensors)
    fmt::print("  {:28} {:5} [{}]\n", screen_text(tensor_name), name_of(tensor.dtype),
               fmt::join(tensor.shape, ", "));
}

}  // namespace deeptail::cli
