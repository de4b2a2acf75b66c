// What makes two models the same: equal weights, and equal values of all that config.json says about what is
// computed with them.
#include <bit>

#include "core/sha256.h"
#include "deeptail/model.h"

namespace deeptail {

namespace {

std::string architecture_text(const Architecture& arch) {
  constexpr const char *kNorms[] = {"layer", "rms"}, *kPositions[] = {"learned", "rotary"},
                       *kResiduals[] = {"sequential", "parallel"}, *kMlps[] = {"gelu", "gelu-tanh", "swiglu"};
  std::string out = fmt::format(
      "norm {}\npositions {}\nresidual {}\nmlp {}\nkv_groups {}\n", kNorms[static_cast<int>(arch.norm)],
      kPositions[static_cast<int>(arch.positions)], kResiduals[static_cast<int>(arch.residual)],
      kMlps[static_cast<int>(arch.mlp)], arch.kv_groups);
  // Only where they are not as usual: models without them keep the names that results know them by.
  constexpr const char* kScales[] = {"by-head", "one", "by-head-and-layer"};
  if (arch.attention_scale != Architecture::AttentionScale::kByHead)
    out += fmt::format("attention_scale {}\n", kScales[static_cast<int>(arch.attention_scale)]);
  if (arch.qk_norm) out += "qk_norm\n";
  if (arch.tied_head) out += "tied_head\n";
  for (const double f : arch.frequencies)
    out += fmt::format("frequency {:016x}\n", std::bit_cast<std::uint64_t>(f));
  return out;
}

// Names and formatting of config.json leave no trace. eps as the bits of its float32, which every language
// writes alike.
std::string identity_text(const ModelConfig& c) {
  return fmt::format(
      "deeptail-model-1\n{}n_layers {}\nd_model {}\nn_heads {}\nd_head {}\nd_mlp {}\nn_ctx {}\nd_vocab {}\n"
      "eps {:08x}\n",
      architecture_text(c.arch), c.n_layers, c.d_model, c.n_heads, c.d_head, c.d_mlp, c.n_ctx, c.d_vocab,
      std::bit_cast<std::uint32_t>(c.eps));
}

// Of the files' bytes, one file after the other in the order of their names.
std::string weights_sha256(const TensorMap& tensors) {
  std::map<std::string, std::shared_ptr<const InputFile>> files;
  for (const auto& [name, tensor] : tensors) files.emplace(tensor.file->path(), tensor.file);
  Sha256 hash;
  for (const auto& [path, file] : files) hash.add(file->bytes());
  return hash.hex();
}

}  // namespace

std::string model_sha256(const ModelConfig& config, const TensorMap& tensors) {
  return sha256_hex(fmt::format("{}weights {}\n", identity_text(config), weights_sha256(tensors)));
}

std::string model_sha256(const std::string& folder) {
  return model_sha256(read_config(folder), read_tensors(folder));
}

}  // namespace deeptail
