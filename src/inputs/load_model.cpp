#include <filesystem>

#include "core/sha256.h"
#include "deeptail/load.h"
#include "inputs/gguf_tokenizer.h"

namespace deeptail {

namespace {

std::optional<NamedTokenizer> tokenizer_of_gguf(const std::string& path) {
  const std::string beside = tokenizer_beside(path);
  if (std::error_code error; std::filesystem::exists(beside, error)) {
    const InputFile file(beside);
    return NamedTokenizer{Tokenizer::parse(file.text(), file.path()), sha256_hex(file.bytes())};
  }
  return gguf_tokenizer(read_gguf_metadata(path));
}

}  // namespace

std::optional<NamedTokenizer> tokenizer_of(const ModelConfig& config, const std::string& folder) {
  if (is_gguf_file(folder)) return tokenizer_of_gguf(folder);
  if (config.tokenizer_file.empty()) return std::nullopt;
  return load_tokenizer((std::filesystem::path(folder) / config.tokenizer_file).lexically_normal().string());
}

NamedTokenizer load_tokenizer(const std::string& path) {
  return {Tokenizer::load(path), sha256_of_file(path)};
}

LoadedModel load_model(const std::string& name_or_path) {
  const std::string folder = find_model(name_or_path);
  const ModelConfig config = read_config(folder);
  TensorMap tensors = read_tensors(folder);  // loaded and hashed from one reading of the files
  std::string sha256 = model_sha256(config, tensors);
  return {.transformer = Transformer::load(folder, config, std::move(tensors)),
          .tokenizer = tokenizer_of(config, folder),
          .name = config.model_name,
          .folder = folder,
          .sha256 = std::move(sha256)};
}

namespace {
std::string_view tokenizer_sha256(const LoadedModel& model) {
  return model.tokenizer ? std::string_view(model.tokenizer->sha256) : "";
}
}  // namespace

Distribution load_distribution(const std::string& name_or_path, const LoadedModel& model) {
  Distribution dist = load_distribution(name_or_path);
  check_fits(dist, model.config(), tokenizer_sha256(model));
  return dist;
}

std::unique_ptr<InputLaw> load_law(const std::string& name_or_path, const LoadedModel& model) {
  auto law = load_law(name_or_path, law_subject(model));
  check_fits(*law, model.config(), tokenizer_sha256(model));
  return law;
}

LawSubject law_subject(const LoadedModel& model) {
  return {.model_name = model.name,
          .folder = model.folder,
          .d_vocab = model.config().d_vocab,
          .tokenizer = model.tokenizer,
          .transformer = model.transformer,
          .model_sha256 = model.sha256};
}

LawSubject law_subject(const std::string& model) {
  const std::string folder = find_model(model);
  const ModelConfig config = read_config(folder);
  return {.model_name = config.model_name,
          .folder = folder,
          .d_vocab = config.d_vocab,
          .tokenizer = tokenizer_of(config, folder)};
}

}  // namespace deeptail
