// Sampled inputs through the model, batch by batch.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "deeptail/estimators.h"
#include "estimators/first_layer.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxTableBytes = std::size_t{512} << 20;
constexpr std::size_t kFirstBatch = 256, kSmallestBatch = 32, kLargestBatch = 16384;
constexpr double kBatchSeconds = 0.5;

std::size_t table_bytes(const Distribution& dist, const ModelConfig& config) {
  std::size_t rows = 0;
  for (std::size_t position = 0; position < dist.length(); ++position) rows += dist.table(position).size();
  return rows * std::max(config.d_model, 3 * config.d_attn()) * sizeof(float);
}

}  // namespace

std::unique_ptr<const FirstLayerTable> first_layer_table(const Transformer& model, const Distribution& dist,
                                                         ThreadPool& pool) {
  if (table_bytes(dist, model.config()) > kMaxTableBytes) return nullptr;
  return std::make_unique<const FirstLayerTable>(model, dist.support(), pool);
}

InputRunner::InputRunner(const Transformer& model, const Distribution& dist, std::uint64_t seed,
                         ThreadPool& pool)
    : model_(model), dist_(dist), seed_(seed), pool_(pool), table_(first_layer_table(model, dist, pool)) {}

std::span<const TokenId> InputRunner::run(std::uint64_t first, std::size_t n) {
  const std::size_t d = model_.config().d_model;
  tokens_.resize(n * dist_.length());
  said_.resize(n);
  if (resid_.size() < n * d) resid_.resize(n * d);
  sample_range(dist_, seed_, first, pool_, tokens_);
  final_residuals(model_, {tokens_, dist_.length()}, pool_, {resid_.data(), d}, table_.get());
  argmax(model_.head(), n, {resid_.data(), d}, pool_, said_);
  return said_;
}

std::span<const TokenId> InputRunner::input(std::size_t i) const {
  return std::span(tokens_).subspan(i * dist_.length(), dist_.length());
}

std::uint64_t for_each_batch(InputRunner& runner, std::uint64_t first, std::uint64_t count,
                             const std::function<void(std::uint64_t, std::span<const TokenId>)>& visit,
                             const KeepGoing& keep_going) {
  using Clock = std::chrono::steady_clock;
  std::size_t batch = kFirstBatch;
  std::uint64_t done = 0;
  while (done < count) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(batch, count - done));
    const auto start = Clock::now();
    visit(first + done, runner.run(first + done, n));
    done += n;
    if (keep_going && !keep_going(done)) break;
    const double seconds = std::max(1e-6, std::chrono::duration<double>(Clock::now() - start).count());
    const double wanted =
        std::min(static_cast<double>(n) / seconds * kBatchSeconds, 2.0 * static_cast<double>(batch));
    batch = std::clamp(static_cast<std::size_t>(wanted), kSmallestBatch, kLargestBatch);
  }
  return done;
}

}  // namespace deeptail
