#include "estimators/load_subject.h"

#include <filesystem>

#include "core/sha256.h"

namespace deeptail {

std::optional<NamedTokenizer> tokenizer_of(const ModelConfig& config, const std::string& folder) {
  if (config.tokenizer_file.empty()) return std::nullopt;
  const MappedFile file((std::filesystem::path(folder) / config.tokenizer_file).lexically_normal().string());
  return NamedTokenizer{Tokenizer::parse(file.text(), file.path()), sha256_hex(file.bytes())};
}

Subject load_subject(const std::string& model_name, const std::string& dist_name) {
  Distribution dist = load_distribution(dist_name);
  const std::string folder = find_model(model_name);
  const ModelConfig config = read_config(folder);
  const TensorMap tensors = read_tensors(folder);  // loaded and hashed from one reading of the files
  Transformer model = Transformer::load(folder, config, tensors);
  auto tokenizer = tokenizer_of(model.config(), folder);
  check_fits(dist, model.config(), tokenizer ? std::string_view(tokenizer->sha256) : "");
  Provenance provenance{.model = model.config().model_name,
                        .dist = dist.name,
                        .model_sha256 = model_sha256(config, tensors),
                        .dist_sha256 = dist.sha256};
  return {std::move(model), std::move(tokenizer), std::move(dist), std::move(provenance)};
}

void decode_tokens(Estimate& estimate, const std::optional<NamedTokenizer>& tokenizer) {
  if (!tokenizer) return;
  for (Trigger& t : estimate.triggers) t.text = tokenizer->tokenizer.decode_all(t.tokens);
  for (DecidingPosition& p : estimate.positions)
    p.text = tokenizer->tokenizer.decode_all(std::span(&p.token, 1));
}

}  // namespace deeptail
