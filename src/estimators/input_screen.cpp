#include "estimators/input_screen.h"

namespace deeptail {

Screen screen_for(const Transformer& model, const Distribution& dist, std::uint64_t seed, ThreadPool& pool,
                  const FirstLayerTable* table) {
  constexpr std::size_t n_samples = 1024;
  const std::size_t d = model.config().d_model;
  std::vector<TokenId> tokens(n_samples * dist.length());
  sample_range(dist, seed, 0, pool, tokens);
  AlignedVector<float> resid(n_samples * d);
  final_residuals(model, {tokens, dist.length()}, pool, {resid.data(), d}, table);
  return Screen(model.head(), n_samples, {resid.data(), d}, pool);
}

}  // namespace deeptail
