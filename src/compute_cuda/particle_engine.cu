// The order of work: copy a batch in, then step by step propose, margins of all proposals (second_look.cuh),
// accept; copy it out. The host waits once per batch.
#include "compute_cuda/particle_engine.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "compute_cuda/device.cuh"
#include "compute_cuda/tokens/bases.cuh"
#include "compute_cuda/tokens/second_look.cuh"

namespace deeptail::cuda {

namespace {

// Memory of the host that the device copies to and from without a detour.
template <class T>
class PinnedArray {
 public:
  explicit PinnedArray(std::size_t n) : size_(n) {
    check(cudaMallocHost(&data_, std::max<std::size_t>(1, n) * sizeof(T)), "page-locked host memory");
  }
  ~PinnedArray() { cudaFreeHost(data_); }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;
  T* data() const { return data_; }
  std::span<T> span() const { return {data_, size_}; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

template <class T>
void copy_in(const DeviceArray<T>& to, const PinnedArray<T>& from, std::size_t n, cudaStream_t stream) {
  check(cudaMemcpyAsync(to.data(), from.data(), n * sizeof(T), cudaMemcpyHostToDevice, stream),
        "copy to the device");
}
template <class T>
void copy_out(const PinnedArray<T>& to, const DeviceArray<T>& from, std::size_t n, cudaStream_t stream) {
  check(cudaMemcpyAsync(to.data(), from.data(), n * sizeof(T), cudaMemcpyDeviceToHost, stream),
        "copy from the device");
}

// A batch on the host and on the device.
struct LaneMemory {
  LaneMemory(std::size_t n, std::size_t n_groups, std::size_t length)
      : words(n * (length + 1)),
        group(n),
        target(n),
        other(n),
        margin(n),
        groups(n_groups),
        cumulative(n_groups * (length + 1)),
        counts(n_groups * count_slots(length)),
        from(n_groups * length),
        device_states(n * (length + 1)),
        device_group(n),
        device_target(n),
        device_other(n),
        device_margin(n),
        device_groups(n_groups),
        device_cumulative(n_groups * (length + 1)),
        device_counts(n_groups * count_slots(length)),
        device_from(n_groups * length),
        view{words.span().first(n * length), words.span(), margin.span(), other.span()} {
    check(cudaEventCreateWithFlags(&done, cudaEventBlockingSync | cudaEventDisableTiming), "event");
  }
  ~LaneMemory() { cudaEventDestroy(done); }

  PinnedArray<std::uint32_t> words, group, target, other;  // words: rows or states
  PinnedArray<float> margin;
  PinnedArray<DeviceGroup> groups;
  PinnedArray<double> cumulative;
  PinnedArray<MoveCounts> counts;
  PinnedArray<std::uint32_t> from;
  DeviceArray<std::uint32_t> device_states, device_group, device_target, device_other;
  DeviceArray<float> device_margin;
  DeviceArray<DeviceGroup> device_groups;
  DeviceArray<double> device_cumulative;
  DeviceArray<MoveCounts> device_counts;
  DeviceArray<std::uint32_t> device_from;
  ParticleEngine::Lane view;
  cudaEvent_t done = nullptr;
};

ParticleEngineOptions settled(ParticleEngineOptions options, std::size_t length) {
  constexpr std::size_t kMost = 1 << 18, kMostCells = 1 << 24;
  if (options.max_particles == 0)
    options.max_particles = std::clamp<std::size_t>(kMostCells / length, 1024, kMost);
  return options;
}

}  // namespace

struct ParticleEngine::Impl {
  Impl(const DenseModel& model, const DenseInputs& inputs, const ParticleEngineOptions& options_)
      : options(settled(options_, inputs.length())),
        length(inputs.length()),
        bases(inputs),
        rows(options.max_particles * length),
        changed(options.max_particles * (length + 1)),
        note(options.max_particles),
        forward(model, inputs, FastForward::fits(model, length)) {
    if (FastForward::fits(model, length)) second_look.emplace(model, inputs, options.max_particles);
    for (std::size_t i = 0; i < options.lanes; ++i)
      lanes.push_back(std::make_unique<LaneMemory>(options.max_particles, options.max_groups, length));
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    check(cudaDeviceSynchronize(), "preparing the device");
  }
  ~Impl() {
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }

  // Writes each particle's group and target; returns the number of particles.
  template <class Group>
  std::uint32_t lay_out(LaneMemory& lane, std::span<const Group> groups) const {
    std::size_t n = 0;
    if (groups.size() > options.max_groups) throw Failure("too many groups for one batch");
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const std::size_t end = n + groups[g].n_particles;
      if (end > options.max_particles) throw Failure("too many particles for one batch");
      std::fill(lane.group.data() + n, lane.group.data() + end, static_cast<std::uint32_t>(g));
      std::fill(lane.target.data() + n, lane.target.data() + end, groups[g].target);
      n = end;
    }
    return static_cast<std::uint32_t>(n);
  }

  void describe(LaneMemory& lane, std::span<const MovingGroup> groups) const {
    std::uint32_t begin = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const MovingGroup& from = groups[g];
      if (g > 0 && from.n_steps > groups[g - 1].n_steps) throw Failure("groups out of order");
      const MoveTables base = bases.at(from.base);
      lane.groups.data()[g] = {.seed = from.seed,
                               .base = base,
                               .begin = begin,
                               .first_particle = from.first_particle,
                               .level_number = from.level_number,
                               .first_step = from.first_step,
                               .block = from.block,
                               .level = from.level,
                               .suffix_share = from.suffix_share,
                               .redraw_share = from.suffix_share + from.block_share};
      std::copy_n(from.cumulative, base.n_parts(), lane.cumulative.data() + g * (length + 1));
      begin += from.n_particles;
    }
  }

  MoveArgs args_of(const LaneMemory& lane) const {
    return {.length = static_cast<int>(length),
            .groups = lane.device_groups.data(),
            .cumulative = lane.device_cumulative.data(),
            .group = lane.device_group.data(),
            .states = lane.device_states.data(),
            .changed = changed.data(),
            .proposed = rows.data(),
            .margin = lane.device_margin.data(),
            .note = note.data(),
            .counts = lane.device_counts.data(),
            .from = lane.device_from.data()};
  }

  void start_moves(LaneMemory& lane, std::span<const MovingGroup> groups, std::uint32_t n) const {
    copy_in(lane.device_states, lane.words, n * (length + 1), stream);
    copy_in(lane.device_group, lane.group, n, stream);
    copy_in(lane.device_target, lane.target, n, stream);
    copy_in(lane.device_groups, lane.groups, groups.size(), stream);
    copy_in(lane.device_cumulative, lane.cumulative, groups.size() * (length + 1), stream);
    const std::size_t n_counts = groups.size() * count_slots(length), n_from = groups.size() * length;
    check(cudaMemsetAsync(lane.device_counts.data(), 0, n_counts * sizeof(MoveCounts), stream), "clear");
    check(cudaMemsetAsync(lane.device_from.data(), 0, n_from * sizeof(std::uint32_t), stream), "clear");
    const MoveArgs args = args_of(lane);
    std::uint32_t moved = 0, moving = n;  // particles in the step before, and in this one
    std::size_t last = groups.size();
    for (std::uint32_t step = 0; moving > 0 || moved > 0; ++step) {
      while (last > 0 && groups[last - 1].n_steps <= step) moving -= groups[--last].n_particles;
      const std::uint32_t warps = std::max(moved, moving);
      if (warps == 0) break;
      move_step<<<(warps + kMoveThreads / 32 - 1) / (kMoveThreads / 32), kMoveThreads, 0, stream>>>(
          args, moved, moving, step);
      if (moving > 0) start_margins(lane, args, moving);
      moved = moving;
    }
    check(cudaGetLastError(), "starting the kernels");
    copy_out(lane.words, lane.device_states, n * (length + 1), stream);
    copy_out(lane.counts, lane.device_counts, n_counts, stream);
    copy_out(lane.from, lane.device_from, n_from, stream);
    check(cudaEventRecord(lane.done, stream), "event");
  }

  // Of the proposals of the first n particles.
  void start_margins(LaneMemory& lane, const MoveArgs& args, std::uint32_t n) const {
    if (second_look)
      return second_look->margins(args, n, lane.device_target.data(), lane.device_margin.data(), forward,
                                  stream);
    forward.margins(n, rows.data(), lane.device_target.data(), lane.device_margin.data(),
                    lane.device_other.data(), stream);
  }

  // Group by group: an fp16 margin depends, by its rounding, on its place among those that are computed
  // together, and so on its group alone.
  void start_fast_margins(LaneMemory& lane, std::span<const ParticleGroup> groups) const {
    std::size_t at = 0;
    for (const ParticleGroup& group : groups) {
      if (group.n_particles == 0) continue;
      second_look->fast().margins(group.n_particles, rows.data() + at * length,
                                  lane.device_target.data() + at, lane.device_margin.data() + at, stream);
      at += group.n_particles;
    }
  }

  void start_scores(LaneMemory& lane, std::span<const ParticleGroup> groups, std::uint32_t n,
                    bool fast) const {
    copy_in(rows, lane.words, n * length, stream);
    copy_in(lane.device_target, lane.target, n, stream);
    if (fast)
      start_fast_margins(lane, groups);
    else
      forward.margins(n, rows.data(), lane.device_target.data(), lane.device_margin.data(),
                      lane.device_other.data(), stream);
    check(cudaGetLastError(), "starting the kernels");
    copy_out(lane.margin, lane.device_margin, n, stream);
    if (!fast) copy_out(lane.other, lane.device_other, n, stream);
    check(cudaEventRecord(lane.done, stream), "event");
  }

  void score(LaneMemory& lane, std::span<const ParticleGroup> groups, bool fast);

  ParticleEngineOptions options;
  std::size_t length;
  Bases bases;
  DeviceArray<std::uint32_t> rows, changed;  // [n, length] that the model reads; states that are proposed
  DeviceArray<MoveNote> note;
  ForwardEngine forward;
  std::optional<SecondLook> second_look;  // where the model has the sizes for it
  std::vector<std::unique_ptr<LaneMemory>> lanes;
  std::mutex starting;  // one lane's kernels follow another's: they share what is above
  cudaStream_t stream = nullptr;
};

ParticleEngine::ParticleEngine(const DenseModel& model, const DenseInputs& inputs,
                               const ParticleEngineOptions& options)
    : impl_(std::make_unique<Impl>(model, inputs, options)) {}
ParticleEngine::~ParticleEngine() = default;

const ParticleEngine::Lane& ParticleEngine::lane(std::size_t i) const { return impl_->lanes[i]->view; }
const ParticleEngineOptions& ParticleEngine::options() const { return impl_->options; }

void ParticleEngine::Impl::score(LaneMemory& lane, std::span<const ParticleGroup> groups, bool fast) {
  const std::uint32_t n = lay_out(lane, groups);
  if (n == 0) return;
  {
    const std::lock_guard lock(starting);
    start_scores(lane, groups, n, fast);
  }
  check(cudaEventSynchronize(lane.done), "scoring");
}
void ParticleEngine::score(std::size_t lane, std::span<const ParticleGroup> groups) {
  impl_->score(*impl_->lanes[lane], groups, false);
}
bool ParticleEngine::score_fast(std::size_t lane, std::span<const ParticleGroup> groups) {
  if (impl_->second_look) impl_->score(*impl_->lanes[lane], groups, true);
  return impl_->second_look.has_value();
}

void ParticleEngine::move(std::size_t lane_number, std::span<const MovingGroup> groups) {
  LaneMemory& lane = *impl_->lanes[lane_number];
  const std::uint32_t n = impl_->lay_out(lane, groups);
  if (n == 0) return;
  impl_->describe(lane, groups);
  {
    const std::lock_guard lock(impl_->starting);
    impl_->start_moves(lane, groups, n);
  }
  check(cudaEventSynchronize(lane.done), "moving");
}

GroupCounts ParticleEngine::counts(std::size_t lane, std::size_t group) const {
  const std::size_t length = impl_->length;
  const LaneMemory& memory = *impl_->lanes[lane];
  const MoveCounts* all = memory.counts.data() + group * count_slots(length);
  return {.single = std::span(all, length + 1),
          .block = all[count_slot(MoveKind::kBlock, length, 0)],
          .suffix = all[count_slot(MoveKind::kSuffix, length, 0)],
          .from = std::span(memory.from.data() + group * length, length)};
}

std::size_t ParticleEngine::add_base(const DenseBase& base) { return impl_->bases.add(base); }
void ParticleEngine::remove_base(std::size_t base) { impl_->bases.remove(base); }

}  // namespace deeptail::cuda
