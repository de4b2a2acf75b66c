// Counting on a CUDA device, where this build has the backend.
#include "deeptail/bench.h"

#ifdef DEEPTAIL_HAS_CUDA

#include <algorithm>
#include <chrono>

#include "compute_cuda/dense_model.h"
#include "compute_cuda/truth_engine.h"

namespace deeptail {

namespace {

constexpr double kCollectSeconds = 0.5;

InputError unusable(const cuda::Failure& failure) {
  return InputError("--device cuda: {}; use --device cpu", failure.what());
}

// Batches grow until the device is busy for half a second at a time.
std::uint64_t count_batches(cuda::TruthEngine& engine, std::uint64_t first, std::uint64_t count,
                            std::span<std::uint64_t> counts, const KeepGoing& keep_going) {
  using Clock = std::chrono::steady_clock;
  std::uint64_t done = 0, at_once = engine.batch();
  while (done < count) {
    const std::uint64_t n = std::min(at_once, count - done);
    const auto start = Clock::now();
    engine.count(first + done, n);
    engine.collect(counts);
    done += n;
    if (keep_going && !keep_going(done)) break;
    if (std::chrono::duration<double>(Clock::now() - start).count() < kCollectSeconds / 2) at_once *= 2;
  }
  return done;
}

}  // namespace

CountInputs count_on_cuda(const Transformer& model, const Distribution& dist, std::uint64_t seed,
                          std::optional<double> near_tie) {
  if (near_tie && !(*near_tie >= 0.0)) throw InputError("--near-tie {}: expected 0 or more", *near_tie);
  try {
    const auto engine = std::make_shared<cuda::TruthEngine>(
        cuda::dense_model(model), cuda::dense_inputs(dist), seed,
        cuda::EngineOptions{.near_tie = static_cast<float>(near_tie.value_or(0.0))});
    if (!near_tie) engine->set_near_tie(engine->usual_near_tie());
    return [engine](std::uint64_t first, std::uint64_t count, std::span<std::uint64_t> counts,
                    const KeepGoing& keep_going) {
      try {
        return count_batches(*engine, first, count, counts, keep_going);
      } catch (const cuda::Failure& failure) {
        throw unusable(failure);
      }
    };
  } catch (const cuda::Failure& failure) {
    throw unusable(failure);
  }
}

std::string cuda_device_name() {
  try {
    return cuda::device_name();
  } catch (const cuda::Failure& failure) {
    throw unusable(failure);
  }
}

}  // namespace deeptail

#else

namespace deeptail {

namespace {
InputError not_built() {
  return InputError(
      "--device cuda: this build has no CUDA backend (it is built where nvcc is found); use --device cpu");
}
}  // namespace

CountInputs count_on_cuda(const Transformer&, const Distribution&, std::uint64_t, std::optional<double>) {
  throw not_built();
}
std::string cuda_device_name() { throw not_built(); }

}  // namespace deeptail

#endif
