// A move of all populations is five kernels, and the host only starts them: proposals, the product with L^T, the
// norm, the maxima of the logits, the decision. How many candidates there are and the step sizes stay on the device.
#include "compute_cuda/activation_engine.h"

#include <algorithm>

#include "compute_cuda/activations/level_run.cuh"
#include "compute_cuda/truth_engine.h"

namespace deeptail::cuda {

namespace {

template <class T>
std::vector<T> download(const T* from, std::size_t n) {
  std::vector<T> out(n);
  check(cudaMemcpy(out.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost), "copy from the device");
  return out;
}

template <class T>
void copy_on_device(T* to, const T* from, std::size_t n) {
  check(cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyDeviceToDevice), "copy on the device");
}

__global__ void copy_parents(std::uint32_t n, int stride, const std::uint32_t* parents, const float* from,
                             float* to, const std::uint32_t* from_groups, std::uint32_t* to_groups) {
  for (std::uint32_t i = blockIdx.x; i < n; i += gridDim.x) {
    const std::uint32_t parent = parents[i];
    for (int j = static_cast<int>(threadIdx.x); j < stride; j += static_cast<int>(blockDim.x))
      to[static_cast<std::size_t>(i) * stride + j] = from[static_cast<std::size_t>(parent) * stride + j];
    if (threadIdx.x == 0 && to_groups != nullptr) to_groups[i] = from_groups[parent];
  }
}

}  // namespace

struct ActivationEngine::Impl {
  Impl(const DenseHead& head_, const DensePrior& prior, MoveKernel kernel, const EngineRoom& room, bool plain)
      : head(head_),
        proposer(prior, kernel),
        scorer(head, room.populations, room.populations * room.particles, room.target, plain),
        memory(head, room, scorer.stride()),
        parents(room.particles),
        count(1),
        margin(room.populations * room.particles) {}

  DenseHead head;  // for targets to come
  Proposer proposer;
  RowScorer scorer;
  PointMemory memory;
  DeviceArray<std::uint32_t> parents, count;
  DeviceArray<float> margin;
};

ActivationEngine::ActivationEngine(const DenseHead& head, const DensePrior& prior, MoveKernel kernel,
                                   const EngineRoom& room, bool plain) {
  device_name();  // tells when there is none
  impl_ = std::make_unique<Impl>(head, prior, kernel, room, plain);
}
ActivationEngine::~ActivationEngine() = default;

std::size_t ActivationEngine::fitting(std::size_t d, std::size_t d_vocab, std::size_t particles,
                                      std::size_t moves) {
  std::size_t free = 0, all = 0;
  device_name();
  check(cudaMemGetInfo(&free, &all), "device memory");
  const double own = 12.0 * static_cast<double>(up_to(d, 8)) + RowScorer::bytes_of_row(d, d_vocab) + 20.0;
  const double bytes = static_cast<double>(particles) * own + 12.0 * static_cast<double>(moves);
  return static_cast<std::size_t>(std::clamp(0.5 * static_cast<double>(free) / bytes, 1.0, 1e6));
}

void ActivationEngine::set_target(std::size_t slot, std::span<const std::uint32_t> ids) {
  impl_->scorer.targets().set(impl_->head, slot, ids);
}

std::size_t ActivationEngine::size(std::size_t slot) const { return impl_->memory.sizes[slot]; }

void ActivationEngine::set(std::size_t slot, std::span<const float> u,
                           std::span<const std::uint32_t> groups) {
  Impl& s = *impl_;
  const auto d = static_cast<std::size_t>(s.memory.d);
  if (u.size() / d > s.memory.particles) throw Failure("more particles than there is room for");
  s.memory.sizes[slot] = static_cast<std::uint32_t>(u.size() / d);
  const std::vector<float> wide = padded(u, d, static_cast<std::size_t>(s.memory.stride));
  check(cudaMemcpy(s.memory.u.data() + s.memory.first_number(slot), wide.data(), wide.size() * sizeof(float),
                   cudaMemcpyHostToDevice),
        "copy to the device");
  if (!groups.empty())
    check(cudaMemcpy(s.memory.groups_of(s.memory.groups, slot), groups.data(), groups.size_bytes(),
                     cudaMemcpyHostToDevice),
          "copy to the device");
}

std::vector<std::vector<float>> ActivationEngine::scores(std::span<const std::size_t> slots) {
  Impl& s = *impl_;
  std::uint32_t n = 0;
  for (const std::size_t slot : slots) {
    const std::uint32_t own = s.memory.sizes[slot];
    all_candidates<<<row_blocks(own), kRowThreads>>>(
        static_cast<std::uint32_t>(slot), static_cast<std::uint32_t>(s.memory.first_row(slot)), own, n,
        s.memory.d, s.memory.stride, s.memory.u.data(), s.memory.groups.data(),
        s.scorer.candidates(s.count.data()));
    n += own;
  }
  s.scorer.run(n, s.count.data(), [] {});
  s.scorer.settle(n, s.count.data(), {.margin = s.margin.data()});
  const std::vector<float> found = download(s.margin.data(), n);
  std::vector<std::vector<float>> out;
  auto from = found.begin();
  for (const std::size_t slot : slots) {
    out.emplace_back(from, from + s.memory.sizes[slot]);
    from += s.memory.sizes[slot];
  }
  return out;
}

void ActivationEngine::resample(std::size_t slot, std::span<const std::uint32_t> parents) {
  Impl& s = *impl_;
  if (parents.size() > s.memory.particles) throw Failure("more particles than there is room for");
  upload(s.parents, parents);
  const auto n = s.memory.sizes[slot] = static_cast<std::uint32_t>(parents.size());
  float *u = s.memory.u.data() + s.memory.first_number(slot),
        *next = s.memory.next.data() + s.memory.first_number(slot);
  std::uint32_t *groups = s.memory.groups_of(s.memory.groups, slot),
                *next_groups = s.memory.groups_of(s.memory.next_groups, slot);
  copy_parents<<<4 * s.scorer.n_sm(), 128>>>(n, s.memory.stride, s.parents.data(), u, next, groups,
                                             next_groups);
  check(cudaGetLastError(), "resampling");
  copy_on_device(u, next, static_cast<std::size_t>(n) * static_cast<std::size_t>(s.memory.stride));
  if (s.memory.grouped()) copy_on_device(groups, next_groups, n);
}

std::vector<MovesDone> ActivationEngine::move(const MoveSchedule& schedule,
                                              std::span<const LevelMoves> levels) {
  Impl& s = *impl_;
  const LevelRun run(s.proposer, s.scorer, s.memory, schedule, levels);
  copy_on_device(s.memory.before.data(), s.memory.u.data(), s.memory.u.size());
  run.run([] {});
  return run.results();
}

std::vector<float> ActivationEngine::points(std::size_t slot) const {
  const std::size_t n = impl_->memory.sizes[slot], d = static_cast<std::size_t>(impl_->memory.d),
                    stride = static_cast<std::size_t>(impl_->memory.stride);
  const std::vector<float> rows =
      download(impl_->memory.u.data() + impl_->memory.first_number(slot), n * stride);
  std::vector<float> out(n * d);
  for (std::size_t i = 0; i < n; ++i) std::copy_n(rows.data() + i * stride, d, out.data() + i * d);
  return out;
}

std::vector<std::uint32_t> ActivationEngine::groups(std::size_t slot) const {
  const std::uint32_t* from = impl_->memory.groups_of(impl_->memory.groups, slot);
  return from != nullptr ? download(from, impl_->memory.sizes[slot]) : std::vector<std::uint32_t>();
}

ActivationEngine::StageSeconds ActivationEngine::time_stages(const MoveSchedule& schedule,
                                                             std::span<const LevelMoves> levels) {
  constexpr std::size_t kMarks = 6;
  const LevelRun run(impl_->proposer, impl_->scorer, impl_->memory, schedule, levels);
  std::vector<cudaEvent_t> marks(kMarks * schedule.moves);
  for (cudaEvent_t& mark : marks) check(cudaEventCreate(&mark), "timing");
  std::size_t next = 0;
  run.run([&] { check(cudaEventRecord(marks[next++]), "timing"); });
  check(cudaDeviceSynchronize(), "timing");
  double sums[kMarks - 1] = {};
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (i % kMarks == 0) continue;
    float ms = 0.0f;
    check(cudaEventElapsedTime(&ms, marks[i - 1], marks[i]), "timing");
    sums[i % kMarks - 1] += ms * 1e-3 / static_cast<double>(schedule.moves);
  }
  for (const cudaEvent_t mark : marks) cudaEventDestroy(mark);
  return {sums[0], sums[1], sums[2], sums[3], sums[4]};
}

}  // namespace deeptail::cuda
