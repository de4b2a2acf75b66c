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
    : model_(model), dist_(&dist), seed_(seed), pool_(pool), table_(first_layer_table(model, dist, pool)) {}

ResidualRunner::ResidualRunner(const Transformer& model, const InputLaw& law, std::uint64_t seed,
                               ThreadPool& pool)
    : model_(model), dist_(law.tables()), law_(&law), seed_(seed), pool_(pool) {
  if (dist_ != nullptr) table_ = first_layer_table(model, *dist_, pool);
}

void ResidualRunner::run(std::uint64_t first, std::size_t n, Rows out) {
  if (dist_ == nullptr) {
    inputs_ = sample_inputs(*law_, seed_, first, n, pool_);
  } else {
    inputs_.resize(n, dist_->length());
    std::fill(inputs_.lengths.begin(), inputs_.lengths.end(), static_cast<std::uint32_t>(dist_->length()));
    sample_range(*dist_, seed_, first, pool_, inputs_.tokens);
  }
  final_residuals(model_, inputs_.batch(), pool_, out, table_.get());
}

}  // namespace deeptail
