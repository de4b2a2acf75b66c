#include "cli/subject.h"

namespace deeptail::cli {

Subject load_subject(const std::string& model_name, const std::string& dist_name) {
  Distribution dist = load_distribution(dist_name);
  const std::string folder = find_model(model_name);
  Transformer model = Transformer::load(folder);
  auto tokenizer = tokenizer_of(model.config(), folder);
  check_fits(dist, model.config(), tokenizer ? std::string_view(tokenizer->sha256) : "");
  Provenance provenance{.model = model.config().model_name,
                        .dist = dist.name,
                        .model_sha256 = weights_sha256(folder),
                        .dist_sha256 = dist.sha256};
  return {std::move(model), std::move(tokenizer), std::move(dist), std::move(provenance)};
}

}  // namespace deeptail::cli
