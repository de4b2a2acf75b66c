#include "deeptail/estimators.h"

namespace deeptail {

Provenance provenance_of(const LoadedModel& model, const Distribution& dist) {
  return {.model = model.name, .dist = dist.name, .model_sha256 = model.sha256, .dist_sha256 = dist.sha256};
}

void decode_tokens(Estimate& estimate, const std::optional<NamedTokenizer>& tokenizer) {
  if (!tokenizer) return;
  for (Trigger& t : estimate.triggers) t.text = tokenizer->tokenizer.decode_all(t.tokens);
  for (DecidingPosition& p : estimate.positions)
    p.text = tokenizer->tokenizer.decode_all(std::span(&p.token, 1));
}

double forward_flops(const ModelConfig& c, std::size_t length) {
  const double n = static_cast<double>(length), d = static_cast<double>(c.d_model);
  const double d_attn = static_cast<double>(c.d_attn()), d_mlp = static_cast<double>(c.d_mlp);
  const double projections = 2.0 * n * (4.0 * d * d_attn + 2.0 * d * d_mlp);
  const double attention = 2.0 * n * (n + 1.0) * d_attn;  // scores and sums over the positions up to each one
  return static_cast<double>(c.n_layers) * (projections + attention) +
         2.0 * d * static_cast<double>(c.d_vocab);
}

}  // namespace deeptail
