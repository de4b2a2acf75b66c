// Finding and loading a model.
#include <algorithm>
#include <filesystem>

#include "core/data_places.h"
#include "core/nearest.h"
#include "deeptail/hub.h"
#include "model/cpu/packed_weights.h"
#include "model/families/family.h"
#include "model/families/gguf_config.h"

namespace deeptail {

namespace fs = std::filesystem;

ModelConfig read_config(const std::string& folder) {
  if (is_gguf_file(folder)) return gguf_config(read_gguf(folder));
  const InputFile file((fs::path(folder) / "config.json").string());
  ModelConfig config = parse_config(file.text(), file.path());
  const bool elsewhere = config.family != ModelConfig{}.family;
  std::error_code error;
  if (elsewhere && fs::is_regular_file(fs::path(folder) / "tokenizer.json", error))
    config.tokenizer_file = "tokenizer.json";  // HuggingFace's folders have it by this name
  const fs::path whole = (fs::absolute(folder) / "").lexically_normal();  // ends in "/", also for "."
  const auto of_hub = hub_folder_name(whole.parent_path().string());
  if (of_hub && hub_alias(*of_hub))
    config.model_name = *of_hub;  // whatever its author calls it: counts are found by this name
  else if (config.model_name.empty())
    config.model_name = of_hub.value_or(whole.parent_path().filename().string());
  if (config.tokenizer_file.empty()) config.tokenizer_file = hub_tokenizer_of(folder).value_or("");
  return config;
}

Transformer Transformer::from_tensors(const ModelConfig& config, const TensorMap& tensors,
                                      const std::string& where) {
  return Transformer(
      config, TensorTaker(tensors, where), [tensors] { return tensors; }, where);
}

const Transformer& Transformer::none() {
  static const Transformer nothing;
  return nothing;
}

Transformer Transformer::load(const std::string& folder) {
  const ModelConfig config = read_config(folder);  // first: it knows other libraries' models
  return load(folder, config, read_tensors(folder));
}

Transformer Transformer::load(const std::string& folder, const ModelConfig& config, TensorMap&& tensors) {
  const TensorMap used_up = std::move(tensors);
  return Transformer(
      config, TensorTaker(used_up, folder, TensorTaker::After::kGiveBack),
      [folder] { return read_tensors(folder); }, folder);
}

Transformer::Transformer(ModelConfig config, TensorTaker&& taker, ReadTensors read, std::string where)
    : config_(std::move(config)), read_(std::move(read)), where_(std::move(where)) {
  packed_ = std::make_shared<const PackedWeights>(pack_weights(config_, taker));
}

ModelWeights Transformer::raw_weights() const {
  const TensorMap tensors = read_();
  TensorTaker taker(tensors, where_);
  ModelWeights weights = take_weights(config_, taker);
  // Another model's files would have other embeddings.
  std::vector<float> row(config_.d_model);
  const auto same = [&](std::size_t token) {
    packed_->embedding(static_cast<TokenId>(token), row.data());
    return std::equal(row.begin(), row.end(), weights.w_e.data() + token * config_.d_model);
  };
  for (std::size_t token = 0; token < config_.d_vocab; ++token)
    if (!same(token)) throw InputError("{}: the weights were replaced while they were in use", where_);
  return weights;
}

Transformer Transformer::first_blocks(std::size_t n) const {
  if (n == 0 || n > config_.n_layers)
    throw InputError("{}: the first {} blocks: expected 1 to {}", where_, n, config_.n_layers);
  Transformer out = *this;
  if (n == config_.n_layers) return out;
  out.config_.n_layers = n;
  // Packed anew: the last block is packed otherwise than the others.
  const TensorMap tensors = read_();
  TensorTaker taker(tensors, where_);
  out.packed_ = std::make_shared<const PackedWeights>(pack_weights(out.config_, taker, /*whole=*/false));
  return out;
}

const Head& Transformer::head() const { return packed_->head; }

namespace {

// A folder with a config, or a GGUF file.
bool is_model(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path / "config.json", error)) return true;
  return path.extension() == ".gguf" && is_gguf_file(path.string());
}

}  // namespace

std::string find_model(const std::string& name_or_path) {
  if (is_hub_name(name_or_path)) return find_model(find_in_hub_cache(parse_hub_name(name_or_path)).path);
  std::error_code error;
  if (fs::is_directory(name_or_path, error)) return name_or_path;
  if (fs::is_regular_file(name_or_path, error)) {
    if (is_gguf_file(name_or_path)) return name_or_path;
    throw InputError("model {}: a file: expected a GGUF file, or the folder with config.json and the weights",
                     name_or_path);
  }
  std::vector<std::string> tried;
  for (const fs::path& place : data_places("models")) {
    if (is_model(place / name_or_path)) return (place / name_or_path).string();
    tried.push_back(place.string());
  }
  if (const auto hub = hub_alias(name_or_path)) return find_model(find_in_hub_cache(*hub).path);
  std::vector<std::string> names;
  for (const std::string& folder : list_models()) names.push_back(fs::path(folder).filename().string());
  throw InputError(
      "model {}: no such folder, and no model of that name in {}; `deeptail model list` shows what there "
      "is{}",
      name_or_path, fmt::join(tried, ", "), did_you_mean(name_or_path, names));
}

std::vector<std::string> list_models() {
  std::vector<std::string> found;
  std::vector<fs::path> seen;
  std::error_code error;
  for (const fs::path& place : data_places("models"))
    for (const auto& entry : fs::directory_iterator(place, error)) {
      const fs::path real = fs::weakly_canonical(entry.path(), error);
      if (!is_model(entry.path()) || std::find(seen.begin(), seen.end(), real) != seen.end()) continue;
      seen.push_back(real);
      found.push_back(entry.path().lexically_normal().string());
    }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace deeptail
