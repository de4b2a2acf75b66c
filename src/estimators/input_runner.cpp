// Sampled inputs through the model, batch by batch.
#include <algorithm>
#include <cmath>

#include "core/stopwatch.h"
#include "deeptail/estimators.h"

namespace deeptail {

namespace {

constexpr std::size_t kFirstBatch = 256, kSmallestBatch = 32, kLargestBatch = 16384;
constexpr double kBatchSeconds = 0.5;

}  // namespace

InputRunner::InputRunner(const Transformer& model, const Distribution& dist, std::uint64_t seed,
                         ThreadPool& pool)
    : model_(model), pool_(pool), residuals_(model, dist, seed, pool) {}

std::span<const TokenId> InputRunner::run(std::uint64_t first, std::size_t n) {
  const std::size_t d = model_.config().d_model;
  said_.resize(n);
  if (resid_.size() < n * d) resid_.resize(n * d);
  residuals_.run(first, n, {resid_.data(), d});
  argmax(model_.head(), n, {resid_.data(), d}, pool_, said_);
  return said_;
}

std::uint64_t for_each_batch(std::uint64_t first, std::uint64_t count,
                             const std::function<void(std::uint64_t, std::size_t)>& run, const Watch& watch) {
  std::size_t batch = kFirstBatch;
  std::uint64_t done = 0;
  while (done < count) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(batch, count - done));
    const Stopwatch stopwatch;
    run(first + done, n);
    done += n;
    if (!goes_on(watch, progress_of(done, count))) break;
    const double seconds = std::max(1e-6, stopwatch.seconds());
    const double wanted =
        std::min(static_cast<double>(n) / seconds * kBatchSeconds, 2.0 * static_cast<double>(batch));
    batch = std::clamp(static_cast<std::size_t>(wanted), kSmallestBatch, kLargestBatch);
  }
  return done;
}

std::uint64_t for_each_batch(InputRunner& runner, std::uint64_t first, std::uint64_t count,
                             const std::function<void(std::uint64_t, std::span<const TokenId>)>& visit,
                             const Watch& watch) {
  const auto run = [&](std::uint64_t from, std::size_t n) { visit(from, runner.run(from, n)); };
  return for_each_batch(first, count, run, watch);
}

}  // namespace deeptail
