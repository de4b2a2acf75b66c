#include "estimators/input_screen.h"

namespace deeptail {

namespace {

constexpr std::size_t kScreenSamples = 1024;

Screen screen_of(const Transformer& model, TokenBatch inputs, ThreadPool& pool,
                 const FirstLayerTable* table) {
  const std::size_t d = model.config().d_model;
  AlignedVector<float> resid(inputs.size() * d);
  final_residuals(model, inputs, pool, {resid.data(), d}, table);
  return Screen(model.head(), inputs.size(), {resid.data(), d}, pool);
}

}  // namespace

Screen screen_for(const Transformer& model, const InputLaw& law, std::uint64_t seed, ThreadPool& pool,
                  const FirstLayerTable* table) {
  return screen_of(model, sample_inputs(law, seed, 0, kScreenSamples, pool).batch(), pool, table);
}

Screen screen_for(const Transformer& model, const Distribution& dist, std::uint64_t seed, ThreadPool& pool,
                  const FirstLayerTable* table) {
  std::vector<TokenId> tokens(kScreenSamples * dist.length());
  sample_range(dist, seed, 0, pool, tokens);
  return screen_of(model, {tokens, dist.length()}, pool, table);
}

}  // namespace deeptail
