#include <algorithm>

#include "deeptail/activations.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxTableBytes = std::size_t{512} << 20;

}  // namespace

std::unique_ptr<const FirstLayerTable> first_layer_table(const Transformer& model, const Distribution& dist,
                                                         ThreadPool& pool) {
  const auto support = dist.support();
  if (FirstLayerTable::bytes_of(model.config(), support) > kMaxTableBytes) return nullptr;
  return std::make_unique<const FirstLayerTable>(model, support, pool);
}

ResidualRunner::ResidualRunner(const Transformer& model, const Distribution& dist, std::uint64_t seed,
                               ThreadPool& pool)
    : model_(model), dist_(dist), seed_(seed), pool_(pool), table_(first_layer_table(model, dist, pool)) {}

void ResidualRunner::run(std::uint64_t first, std::size_t n, Rows out) {
  tokens_.resize(n * dist_.length());
  sample_range(dist_, seed_, first, pool_, tokens_);
  final_residuals(model_, {tokens_, dist_.length()}, pool_, out, table_.get());
}

std::span<const TokenId> ResidualRunner::input(std::size_t i) const {
  return std::span(tokens_).subspan(i * dist_.length(), dist_.length());
}

}  // namespace deeptail
