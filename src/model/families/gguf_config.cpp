#include "model/families/gguf_config.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <filesystem>

#include "core/json.h"
#include "model/families/rows.h"

namespace deeptail {

namespace {

using Arch = Architecture;

// An architecture of GGUF files, with what is not in their keys.
struct GgufKind {
  std::string_view architecture;
  const char* family;
  Arch arch;
  std::string_view eps_key;
};

// A file names no activation: GPT-2's is the tanh form. llama.cpp computes gptneox with the tanh form too, but
// its models (Pythia) were trained with erf.
const std::vector<GgufKind>& gguf_kinds() {
  constexpr std::string_view kLayerEps = "layer_norm_epsilon", kRmsEps = "layer_norm_rms_epsilon";
  const Arch llama{
      .norm = Arch::Norm::kRms, .positions = Arch::Positions::kRotary, .mlp = Arch::Mlp::kSwiGlu};
  Arch qwen3 = llama;
  qwen3.qk_norm = true;
  static const std::vector<GgufKind> kinds = {
      {"gpt2", kGgufGpt2, {.mlp = Arch::Mlp::kGeluTanh}, kLayerEps},
      {"gptneox",
       kGgufNeoX,
       {.positions = Arch::Positions::kRotary, .residual = Arch::Residual::kParallel},
       kLayerEps},
      {"llama", kGgufLlama, llama, kRmsEps},
      {"qwen2", kGgufQwen2, llama, kRmsEps},
      {"qwen3", kGgufQwen3, qwen3, kRmsEps},
  };
  return kinds;
}

const GgufKind& kind_of(const GgufMetadata& keys) {
  const std::string& name = keys.text("general.architecture");
  std::vector<std::string_view> known;
  for (const GgufKind& kind : gguf_kinds()) {
    if (kind.architecture == name) return kind;
    known.push_back(kind.architecture);
  }
  throw InputError("{}: architecture '{}' has no engine here, only {}", keys.where(), printable(name),
                   fmt::join(known, ", "));
}

// The keys of one architecture, by what follows its name. Remembers which were asked for.
class ArchitectureKeys {
 public:
  ArchitectureKeys(const GgufMetadata& keys, std::string_view architecture)
      : keys_(keys), prefix_(std::string(architecture) + ".") {}

  std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  bool has(std::string_view key) {
    used_.push_back(name(key));
    return keys_.has(used_.back());
  }
  std::size_t count(std::string_view key, std::size_t most) {
    has(key);
    return keys_.count(name(key), 1, most);
  }
  std::size_t count_or(std::string_view key, std::size_t most, std::size_t otherwise) {
    return has(key) ? count(key, most) : otherwise;
  }
  double number(std::string_view key) {
    has(key);
    return keys_.number(name(key));
  }
  double number_or(std::string_view key, double otherwise) { return has(key) ? number(key) : otherwise; }
  bool boolean_or(std::string_view key, bool otherwise) {
    return has(key) ? keys_.boolean(name(key)) : otherwise;
  }
  std::string text_or(std::string_view key, const char* otherwise) {
    return has(key) ? keys_.text(name(key)) : otherwise;
  }
  // A setting that may be there but must be off.
  void require_number(std::string_view key, double value) {
    if (number_or(key, value) != value) keys_.fail_expected(name(key), fmt::format("{}", value));
  }
  void ignore(std::string_view key) { has(key); }
  [[noreturn]] void fail_expected(std::string_view key, std::string_view expected) const {
    keys_.fail_expected(name(key), expected);
  }

  void refuse_others() const {
    for (const std::string& key : keys_.keys())
      if (key.starts_with(prefix_) && std::ranges::find(used_, key) == used_.end())
        throw InputError("{}: key '{}' is not supported: it may change what the model computes",
                         keys_.where(), printable(key));
  }

 private:
  const GgufMetadata& keys_;
  std::string prefix_;
  std::vector<std::string> used_;
};

float read_gguf_eps(ArchitectureKeys& keys, std::string_view eps_key) {
  const std::string key = "attention." + std::string(eps_key);
  const double eps = keys.number(key);
  if (!(eps >= static_cast<double>(FLT_MIN) && eps < 1.0))
    keys.fail_expected(key, fmt::format("a number from {:.2g} to 1", FLT_MIN));
  return static_cast<float>(eps);
}

// What every frequency is divided by.
double linear_factor(ArchitectureKeys& keys) {
  const std::string type = keys.text_or("rope.scaling.type", "none");
  if (type != "none" && type != "linear")
    keys.fail_expected("rope.scaling.type", "\"linear\" or \"none\"; other scalings have no engine here");
  keys.ignore("rope.scaling.original_context_length");
  keys.ignore("rope.scaling.finetuned");
  const double factor = keys.number_or("rope.scaling.factor", keys.number_or("rope.scale_linear", 1.0));
  if (!(factor > 0)) keys.fail_expected("rope.scaling.factor", "a number above 0");
  // Before the type was written, a factor alone meant the linear one.
  const bool applies = type == "linear" || !keys.has("rope.scaling.type");
  return applies ? factor : 1.0;
}

// theta^(-2i/r), divided by what rope_freqs.weight [r / 2] has for it: the scaling of Llama 3.
std::vector<double> read_gguf_frequencies(ArchitectureKeys& keys, const ModelConfig& c,
                                          const TensorMap& tensors) {
  const std::size_t dims = keys.count_or("rope.dimension_count", c.d_head, c.d_head);
  if (dims % 2 != 0) keys.fail_expected("rope.dimension_count", "an even number");
  const double theta = keys.number_or("rope.freq_base", 10000.0), factor = linear_factor(keys);
  if (!(theta > 0)) keys.fail_expected("rope.freq_base", "a number above 0");
  std::vector<float> divisors(dims / 2, 1.0f);
  if (const auto it = tensors.find("rope_freqs.weight"); it != tensors.end()) {
    divisors = to_float(it->second);
    if (divisors.size() != dims / 2 || std::ranges::any_of(divisors, [](float d) { return !(d > 0); }))
      throw InputError("{}: expected {} numbers above 0, half of key '{}'", describe(it->second), dims / 2,
                       keys.name("rope.dimension_count"));
  }
  std::vector<double> frequencies(dims / 2);
  for (std::size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(dims)) / factor /
                     static_cast<double>(divisors[i]);
  return frequencies;
}

// Tokens as the embeddings have them; where the key is there too, it must agree.
std::size_t read_gguf_vocab(ArchitectureKeys& keys, const Gguf& gguf) {
  const auto it = gguf.tensors.find("token_embd.weight");
  if (it == gguf.tensors.end() || it->second.shape.size() != 2)
    throw InputError("{}: expected a matrix token_embd.weight", gguf.metadata.where());
  const auto rows = static_cast<std::size_t>(it->second.shape[0]);
  if (keys.count_or("vocab_size", 1u << 24, rows) != rows)
    keys.fail_expected("vocab_size", fmt::format("{}, the rows of token_embd.weight", rows));
  return rows;
}

void read_heads(ArchitectureKeys& keys, ModelConfig& c) {
  c.n_heads = keys.count("attention.head_count", 1u << 16);
  const std::size_t n_kv = keys.count_or("attention.head_count_kv", c.n_heads, c.n_heads);
  if (c.n_heads % n_kv != 0)
    keys.fail_expected("attention.head_count_kv", fmt::format("a divisor of head_count = {}", c.n_heads));
  c.arch.kv_groups = c.n_heads / n_kv;
  if (!keys.has("attention.key_length") && c.d_model % c.n_heads != 0)
    keys.fail_expected("attention.head_count", fmt::format("a divisor of embedding_length = {}", c.d_model));
  c.d_head = keys.count_or("attention.key_length", 1u << 16, c.d_model / c.n_heads);
  if (keys.count_or("attention.value_length", 1u << 16, c.d_head) != c.d_head)
    keys.fail_expected("attention.value_length", fmt::format("the length of keys, {}", c.d_head));
}

// Of Llama's form only some models have them: the tensors say which.
void read_biases(const TensorMap& tensors, ModelConfig& c) {
  const auto has = [&](const char* name) { return c.family == kGgufLlama && tensors.contains(name); };
  const bool gpt = c.arch.norm == Arch::Norm::kLayer;
  c.qkv_bias = gpt || c.family == kGgufQwen2 || has("blk.0.attn_q.bias");
  c.o_bias = gpt || has("blk.0.attn_output.bias");
  c.mlp_bias = gpt || has("blk.0.ffn_up.bias");
}

// What other files have in these keys is another function.
void refuse_other_functions(ArchitectureKeys& keys, const ModelConfig& c) {
  keys.require_number("expert_count", 0);
  keys.require_number("expert_used_count", 0);
  keys.require_number("attention.max_alibi_bias", 0);
  keys.require_number("attention.clamp_kqv", 0);
  keys.require_number("logit_scale", 1);
  if (!keys.boolean_or("attention.causal", true)) keys.fail_expected("attention.causal", "true");
  const double usual = 1 / std::sqrt(static_cast<double>(c.d_head));
  const double scale = keys.number_or("attention.scale", usual);
  if (!(std::abs(scale - usual) <= 1e-6 * usual))
    keys.fail_expected("attention.scale", fmt::format("1 / sqrt({}), the length of keys", c.d_head));
  keys.ignore("tensor_data_layout");  // who wrote the file, not what is in it
  keys.refuse_others();
}

// By which its user knows it; general.name is often a note of whoever converted it.
std::string name_of_file(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  if (name.ends_with(".gguf")) name.resize(name.size() - 5);
  // NAME-00001-of-00003
  if (const auto at = name.rfind("-of-");
      at != name.npos && at + 9 == name.size() && at > 6 && name[at - 6] == '-')
    name.resize(at - 6);
  return name;
}

}  // namespace

ModelConfig gguf_config(const Gguf& gguf) {
  const GgufKind& kind = kind_of(gguf.metadata);
  ArchitectureKeys keys(gguf.metadata, kind.architecture);
  ModelConfig c;
  c.family = kind.family;
  c.arch = kind.arch;
  read_biases(gguf.tensors, c);
  c.n_layers = keys.count("block_count", 1024);
  c.d_model = keys.count("embedding_length", 1u << 16);
  c.d_mlp = keys.count("feed_forward_length", 1u << 20);
  c.n_ctx = keys.count("context_length", 1u << 24);
  read_heads(keys, c);
  c.d_vocab = read_gguf_vocab(keys, gguf);
  c.eps = read_gguf_eps(keys, kind.eps_key);
  if (c.arch.positions == Arch::Positions::kRotary)
    c.arch.frequencies = read_gguf_frequencies(keys, c, gguf.tensors);
  if (c.family == kGgufNeoX && !keys.boolean_or("use_parallel_residual", true))
    c.arch.residual = Arch::Residual::kSequential;
  // Within a window of the latest positions all of them are seen.
  c.n_ctx = std::min(c.n_ctx, keys.count_or("attention.sliding_window", UINT32_MAX, c.n_ctx));
  // Where a head of its own belongs to the architecture, it is missed below.
  c.arch.tied_head = c.family != kGgufNeoX && !gguf.tensors.contains("output.weight");
  refuse_other_functions(keys, c);
  c.model_name = name_of_file(gguf.metadata.where());
  return c;
}

}  // namespace deeptail
