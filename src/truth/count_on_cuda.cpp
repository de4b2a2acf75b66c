// Counting on a CUDA device, where this build has the backend.
#include "deeptail/device.h"
#include "deeptail/truth.h"

#ifdef DEEPTAIL_HAS_CUDA

#include <algorithm>

#include "compute_cuda/dense_model.h"
#include "compute_cuda/truth_engine.h"
#include "core/stopwatch.h"

namespace deeptail {

namespace {

constexpr double kCollectSeconds = 0.5;

// Batches grow until the device is busy for half a second at a time.
std::uint64_t count_batches(cuda::TruthEngine& engine, std::uint64_t first, std::uint64_t count,
                            std::span<std::uint64_t> counts, const Watch& watch) {
  std::uint64_t done = 0, at_once = engine.batch();
  while (done < count) {
    const std::uint64_t n = std::min(at_once, count - done);
    const Stopwatch stopwatch;
    engine.count(first + done, n);
    engine.collect(counts);
    done += n;
    if (!goes_on(watch, progress_of(done, count))) break;
    if (stopwatch.seconds() < kCollectSeconds / 2) at_once *= 2;
  }
  return done;
}

// The same with every verdict brought to the host, for those whose inputs are kept.
std::uint64_t count_and_keep(cuda::TruthEngine& engine, std::uint64_t first, std::uint64_t count,
                             std::span<std::uint64_t> counts, HitStore& hits, const Watch& watch) {
  std::uint64_t done = 0;
  while (done < count) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(engine.batch(), count - done));
    const std::vector<std::uint32_t> verdicts = engine.said(first + done, n);
    const std::vector<TokenId> said(verdicts.begin(), verdicts.end());
    for (const TokenId token : said) ++counts[static_cast<std::size_t>(token)];
    hits.add(first + done, said);
    done += n;
    if (!goes_on(watch, progress_of(done, count))) break;
  }
  return done;
}

// Where weights overflow, every logit is NaN, which the device would count as some token. The CPU refuses
// such rows.
void check_finite_logits(const Transformer& model, const Distribution& dist, std::uint64_t seed) {
  constexpr std::size_t kInputs = 64;
  ThreadPool pool;
  InputRunner(model, dist, seed, pool).run(0, kInputs);
}

}  // namespace

CountInputs count_on_cuda(const Transformer& model, const Distribution& dist, std::uint64_t seed,
                          std::optional<double> near_tie, HitStore* hits) {
  if (near_tie && !(*near_tie >= 0.0)) throw InputError("near-tie of {}: expected 0 or more", *near_tie);
  check_finite_logits(model, dist, seed);
  try {
    const auto engine = std::make_shared<cuda::TruthEngine>(
        cuda::dense_model(model), cuda::dense_inputs(dist), seed,
        cuda::EngineOptions{.near_tie = static_cast<float>(near_tie.value_or(0.0))});
    if (!near_tie) engine->set_near_tie(engine->usual_near_tie());
    return [engine, hits](std::uint64_t first, std::uint64_t count, std::span<std::uint64_t> counts,
                          const Watch& watch) {
      try {
        return hits != nullptr ? count_and_keep(*engine, first, count, counts, *hits, watch)
                               : count_batches(*engine, first, count, counts, watch);
      } catch (const cuda::Failure& failure) {
        throw DeviceError(Device::kCuda, failure.what());
      }
    };
  } catch (const cuda::Failure& failure) {
    throw DeviceError(Device::kCuda, failure.what());
  }
}

std::string cuda_device_name() {
  try {
    return cuda::device_name();
  } catch (const cuda::Failure& failure) {
    throw DeviceError(Device::kCuda, failure.what());
  }
}

}  // namespace deeptail

#else

namespace deeptail {

CountInputs count_on_cuda(const Transformer&, const Distribution&, std::uint64_t, std::optional<double>,
                          HitStore*) {
  throw DeviceError::not_built(Device::kCuda);
}
std::string cuda_device_name() { throw DeviceError::not_built(Device::kCuda); }

}  // namespace deeptail

#endif
