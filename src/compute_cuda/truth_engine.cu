// The order of work: sample, the token said in fp16; near-ties are listed and decided by the forward engine.
// Other sizes go through the forward engine alone.
#include "compute_cuda/truth_engine.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "compute_cuda/fast/fast_forward.h"
#include "compute_cuda/forward_engine.h"
#include "compute_cuda/limits.h"
#include "compute_cuda/tokens/count.cuh"
#include "compute_cuda/tokens/sample.cuh"

namespace deeptail::cuda {

namespace {

// fp16 was seen to decide otherwise than fp32 up to a gap of 7.8 times its rounding error (root mean square
// change of the gap), in 2^17 inputs of each of 16 pairs.
constexpr std::size_t kRoundingInputs = 1 << 14;
constexpr double kRoundings = 10.0;

std::size_t usual_batch(const DenseModel& m, bool fast) {
  if (!fast) return 1u << 16;
  // Whole rounds of row tiles on all multiprocessors.
  if (m.d_model == kWideFastModel)
    return 128u * static_cast<unsigned>(device_traits().n_sm) * (m.n_layers == 1 ? 8 : 2);
  // Rows of the last block are in memory for more than one layer. A multiple of what thread blocks take at
  // once.
  return m.n_layers == 1 ? 1u << 20 : 960u * static_cast<unsigned>(device_traits().n_sm);
}

}  // namespace

std::string device_name() {
  int n = 0;
  check(cudaGetDeviceCount(&n), "looking for a CUDA device");
  if (n == 0) throw Failure("looking for a CUDA device: there is none");
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "looking for a CUDA device");
  return std::string(properties.name) + ", " + std::to_string(properties.totalGlobalMem >> 30) + " GiB";
}

struct TruthEngine::Impl {
  static constexpr std::size_t kBatchesListed = 16;  // near-ties are decided after that many batches
  static constexpr std::uint32_t kAtOnce = 1 << 16;

  Impl(const DenseModel& m, const DenseInputs& inputs, std::uint64_t seed_, const EngineOptions& options_)
      : options(options_),
        seed(seed_),
        length(static_cast<int>(inputs.length())),
        fast_sizes(FastForward::fits(m, inputs.length())),
        batch(options_.batch > 0 ? options_.batch : usual_batch(m, fast_sizes)),
        d_vocab(m.d_vocab),
        tables(inputs.tables),
        first_row(inputs.first_row),
        guide(inputs.guide),
        last_unit(inputs.last_unit),
        forward(m, inputs),
        rows(batch * inputs.length()),
        near_rows(kAtOnce * inputs.length()),
        no_target(std::vector<std::uint32_t>(kAtOnce, kNoTarget)),
        near_said(kAtOnce),
        near_margin(kAtOnce),
        near(fast_sizes ? kBatchesListed * batch : 0),
        n_near_now(1),
        counts((m.d_vocab + 63) / 64 * 64) {
    if (fast_sizes) fast.emplace(m, inputs, batch);
    counts.zero();
    n_near_now.zero();
  }

  void sample(const std::uint64_t* numbers, std::uint64_t first, std::uint32_t n, std::uint32_t* out) const {
    const SampleTables s{tables.data(), first_row.data(), guide.data(), last_unit.data(), length};
    sample_rows<<<1024, 256>>>(s, seed, numbers, first, n, out);
  }

  NearTies near_ties(std::uint64_t first) const {
    return {options.near_tie, first, near.data(), n_near_now.data()};
  }

  // Samples [first, first + n), those of near-ties listed only.
  void run(std::uint64_t first, std::uint32_t n, const Verdicts& verdicts) {
    if (!fast_sizes) return run_exact(nullptr, first, n, verdicts, first);
    if (batches_listed == kBatchesListed) settle(verdicts, first);
    sample(nullptr, first, n, rows.data());
    fast->run_blocks(n, rows.data(), nullptr);
    fast->say(n, rows.data(), near_ties(first), verdicts, nullptr);
    ++batches_listed;
    check(cudaGetLastError(), "starting the kernels");
  }

  // Samples numbers[0..n), or [first, first + n), by the forward engine; verdicts begin at sample `origin`.
  void run_exact(const std::uint64_t* numbers, std::uint64_t first, std::uint32_t n, const Verdicts& verdicts,
                 std::uint64_t origin) const {
    for (std::uint32_t done = 0; done < n; done += kAtOnce) {
      const std::uint32_t now = std::min(kAtOnce, n - done);
      const std::uint64_t* listed = numbers == nullptr ? nullptr : numbers + done;
      sample(listed, first + done, now, near_rows.data());
      forward.margins(now, near_rows.data(), no_target.data(), near_margin.data(), near_said.data(), nullptr);
      std::uint32_t* said = verdicts.said;
      if (said != nullptr && numbers == nullptr) said += first + done - origin;
      count_said<<<(now + 255) / 256, 256>>>(now, near_said.data(), listed, origin, verdicts.counts, said);
      if (verdicts.gap != nullptr && numbers == nullptr)  // by a second look, with what was said as target
        forward.margins(now, near_rows.data(), near_said.data(), verdicts.gap + (first + done - origin),
                        near_other(), nullptr);
    }
    check(cudaGetLastError(), "starting the kernels");
  }
  std::uint32_t* near_other() const {
    if (other.size() == 0) other = DeviceArray<std::uint32_t>(kAtOnce);
    return other.data();
  }

  // Decides the near-ties listed so far.
  void settle(const Verdicts& verdicts, std::uint64_t origin) {
    batches_listed = 0;
    const std::uint32_t n = n_near_now.to_host()[0];
    run_exact(near.data(), 0, n, verdicts, origin);
    n_near_now.zero();
    n_near_total += n;
  }

  Decisions decisions(std::size_t n, const DeviceArray<std::uint32_t>& said,
                      const DeviceArray<float>& gap) const {
    check(cudaDeviceSynchronize(), "counting");
    Decisions out{said.to_host(), gap.to_host()};
    out.said.resize(n), out.gap.resize(n);
    return out;
  }

  EngineOptions options;
  std::uint64_t seed;
  int length;
  bool fast_sizes;
  std::size_t batch, d_vocab, batches_listed = 0;
  std::uint64_t n_near_total = 0;
  DeviceArray<DenseInputs::Table> tables;
  DeviceArray<std::uint32_t> first_row, guide;
  DeviceArray<std::uint64_t> last_unit;
  ForwardEngine forward;
  std::optional<FastForward> fast;
  DeviceArray<std::uint32_t> rows, near_rows, no_target, near_said;
  DeviceArray<float> near_margin;
  DeviceArray<std::uint64_t> near;
  DeviceArray<std::uint32_t> n_near_now;
  DeviceArray<unsigned long long> counts;
  mutable DeviceArray<std::uint32_t> other;
};

TruthEngine::TruthEngine(const DenseModel& model, const DenseInputs& inputs, std::uint64_t seed,
                         const EngineOptions& options) {
  device_name();
  require_forward_sizes(model, inputs.length());
  impl_ = std::make_unique<Impl>(model, inputs, seed, options);
}
TruthEngine::~TruthEngine() = default;

std::size_t TruthEngine::batch() const { return impl_->batch; }

void TruthEngine::count(std::uint64_t first, std::uint64_t n) {
  for (std::uint64_t done = 0; done < n; done += impl_->batch) {
    const auto now = static_cast<std::uint32_t>(std::min<std::uint64_t>(impl_->batch, n - done));
    impl_->run(first + done, now, {impl_->counts.data(), nullptr, nullptr});
  }
}

void TruthEngine::collect(std::span<std::uint64_t> counts) {
  impl_->settle({impl_->counts.data(), nullptr, nullptr}, 0);
  check(cudaDeviceSynchronize(), "counting");
  const std::vector<unsigned long long> found = impl_->counts.to_host();
  for (std::size_t id = 0; id < counts.size(); ++id) counts[id] += found[id];
  impl_->counts.zero();
}

void TruthEngine::set_near_tie(float near_tie) { impl_->options.near_tie = near_tie; }

float TruthEngine::usual_near_tie() {
  if (!impl_->fast_sizes) return 0.0f;
  const float near_tie = std::exchange(impl_->options.near_tie, 0.0f);
  const std::size_t n = std::min(kRoundingInputs, impl_->batch);
  const Decisions fast = decide(0, n), exact = decide_exact(0, n);
  impl_->options.near_tie = near_tie;
  double sum = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    const double change =
        fast.said[i] == exact.said[i] ? fast.gap[i] - exact.gap[i] : fast.gap[i] + exact.gap[i];
    sum += change * change;
  }
  return static_cast<float>(kRoundings * std::sqrt(sum / static_cast<double>(n)));
}

std::uint64_t TruthEngine::n_near() const { return impl_->n_near_total; }

std::vector<std::uint32_t> TruthEngine::sampled_rows(std::uint64_t first, std::size_t n) {
  impl_->sample(nullptr, first, static_cast<std::uint32_t>(n), impl_->rows.data());
  check(cudaDeviceSynchronize(), "sampling");
  std::vector<std::uint32_t> rows = impl_->rows.to_host();
  rows.resize(n * static_cast<std::size_t>(impl_->length));
  return rows;
}

std::vector<std::uint32_t> TruthEngine::said(std::uint64_t first, std::size_t n) {
  const DeviceArray<std::uint32_t> said(impl_->batch);
  const DeviceArray<unsigned long long> counts(impl_->counts.size());
  const Verdicts verdicts{counts.data(), said.data(), nullptr};
  impl_->run(first, static_cast<std::uint32_t>(n), verdicts);
  impl_->settle(verdicts, first);
  check(cudaDeviceSynchronize(), "counting");
  std::vector<std::uint32_t> out = said.to_host();
  out.resize(n);
  return out;
}

Decisions TruthEngine::decide(std::uint64_t first, std::size_t n) {
  const DeviceArray<std::uint32_t> said(impl_->batch);
  const DeviceArray<float> gap(impl_->batch);
  const DeviceArray<unsigned long long> counts(impl_->counts.size());
  const Verdicts verdicts{counts.data(), said.data(), gap.data()};
  impl_->run(first, static_cast<std::uint32_t>(n), verdicts);
  impl_->settle(verdicts, first);
  return impl_->decisions(n, said, gap);
}

Decisions TruthEngine::decide_exact(std::uint64_t first, std::size_t n) {
  const DeviceArray<std::uint32_t> said(n);
  const DeviceArray<float> gap(n);
  const DeviceArray<unsigned long long> counts(impl_->counts.size());
  impl_->run_exact(nullptr, first, static_cast<std::uint32_t>(n), {counts.data(), said.data(), gap.data()},
                   first);
  return impl_->decisions(n, said, gap);
}

TruthEngine::StageSeconds TruthEngine::time_stages(std::uint64_t first) {
  if (!impl_->fast_sizes) return {};
  cudaEvent_t event[5];
  for (cudaEvent_t& e : event) check(cudaEventCreate(&e), "timing");
  const auto n = static_cast<std::uint32_t>(impl_->batch);
  const DeviceArray<unsigned long long> counts(impl_->counts.size());
  const Verdicts verdicts{counts.data(), nullptr, nullptr};
  cudaEventRecord(event[0]);
  impl_->sample(nullptr, first, n, impl_->rows.data());
  cudaEventRecord(event[1]);
  impl_->fast->run_blocks(n, impl_->rows.data(), nullptr);
  cudaEventRecord(event[2]);
  impl_->fast->say(n, impl_->rows.data(), impl_->near_ties(first), verdicts, nullptr);
  cudaEventRecord(event[3]);
  impl_->settle(verdicts, first);
  cudaEventRecord(event[4]);
  check(cudaDeviceSynchronize(), "timing");
  float ms[4];
  for (int i = 0; i < 4; ++i) check(cudaEventElapsedTime(&ms[i], event[i], event[i + 1]), "timing");
  for (const cudaEvent_t e : event) cudaEventDestroy(e);
  return {ms[0] * 1e-3, ms[1] * 1e-3, ms[2] * 1e-3, ms[3] * 1e-3};
}

}  // namespace deeptail::cuda
