#include "deeptail/estimators.h"

namespace deeptail {

Provenance provenance_of(const LoadedModel& model, const Distribution& dist) {
  return {.model = model.name, .dist = dist.name, .model_sha256 = model.sha256, .dist_sha256 = dist.sha256};
}

Provenance provenance_of(const LoadedModel& model, const InputLaw& law) {
  return {.model = model.name,
          .dist = law.facts().name,
          .model_sha256 = model.sha256,
          .dist_sha256 = law.facts().sha256};
}

void decode_tokens(Estimate& estimate, const std::optional<NamedTokenizer>& tokenizer) {
  if (!tokenizer) return;
  for (Trigger& t : estimate.triggers) t.text = tokenizer->tokenizer.decode_all(t.tokens);
  for (DecidingPosition& p : estimate.positions)
    p.text = tokenizer->tokenizer.decode_all(std::span(&p.token, 1));
}

}  // namespace deeptail
