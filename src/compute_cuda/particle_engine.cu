// The order of work: copy a batch in, then step by step propose, margins of all proposals (second_look.cuh),
// accept; copy it out. The host waits once per batch.
#include "compute_cuda/particle_engine.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "compute_cuda/device.cuh"
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
      : rows(n * length),
        group(n),
        target(n),
        other(n),
        margin(n),
        groups(n_groups),
        cumulative(n_groups * length),
        counts(n_groups * kMoveKinds * length),
        device_rows(n * length),
        device_group(n),
        device_target(n),
        device_other(n),
        device_margin(n),
        device_groups(n_groups),
        device_cumulative(n_groups * length),
        device_counts(n_groups * kMoveKinds * length),
        view{rows.span(), margin.span(), other.span()} {
    check(cudaEventCreateWithFlags(&done, cudaEventBlockingSync | cudaEventDisableTiming), "event");
  }
  ~LaneMemory() { cudaEventDestroy(done); }

  PinnedArray<std::uint32_t> rows, group, target, other;
  PinnedArray<float> margin;
  PinnedArray<DeviceGroup> groups;
  PinnedArray<double> cumulative;
  PinnedArray<MoveCounts> counts;
  DeviceArray<std::uint32_t> device_rows, device_group, device_target, device_other;
  DeviceArray<float> device_margin;
  DeviceArray<DeviceGroup> device_groups;
  DeviceArray<double> device_cumulative;
  DeviceArray<MoveCounts> device_counts;
  ParticleEngine::Lane view;
  cudaEvent_t done = nullptr;
};

std::vector<std::uint32_t> free_positions_of(const DenseInputs& inputs) {
  std::vector<std::uint32_t> free;
  for (std::uint32_t p = 0; p < inputs.length(); ++p)
    if (inputs.first_row[p + 1] - inputs.first_row[p] > 1) free.push_back(p);
  return free;
}

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
        tables(inputs.tables),
        first_row(inputs.first_row),
        guide(inputs.guide),
        free(free_positions_of(inputs)),
        last_unit(inputs.last_unit),
        proposed(options.max_particles * length),
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
      lane.groups.data()[g] = {.seed = from.seed,
                               .begin = begin,
                               .first_particle = from.first_particle,
                               .level_number = from.level_number,
                               .first_step = from.first_step,
                               .block = from.block,
                               .level = from.level,
                               .suffix_share = from.suffix_share,
                               .redraw_share = from.suffix_share + from.block_share};
      std::copy_n(from.cumulative, length, lane.cumulative.data() + g * length);
      begin += from.n_particles;
    }
  }

  MoveArgs args_of(const LaneMemory& lane) const {
    const SampleTables sample{tables.data(), first_row.data(), guide.data(), last_unit.data(),
                              static_cast<int>(length)};
    return {.tables = {sample, free.data(), static_cast<std::uint32_t>(free.size())},
            .groups = lane.device_groups.data(),
            .cumulative = lane.device_cumulative.data(),
            .group = lane.device_group.data(),
            .rows = lane.device_rows.data(),
            .proposed = proposed.data(),
            .margin = lane.device_margin.data(),
            .note = note.data(),
            .counts = lane.device_counts.data()};
  }

  void start_moves(LaneMemory& lane, std::span<const MovingGroup> groups, std::uint32_t n) const {
    copy_in(lane.device_rows, lane.rows, n * length, stream);
    copy_in(lane.device_group, lane.group, n, stream);
    copy_in(lane.device_target, lane.target, n, stream);
    copy_in(lane.device_groups, lane.groups, groups.size(), stream);
    copy_in(lane.device_cumulative, lane.cumulative, groups.size() * length, stream);
    const std::size_t n_counts = groups.size() * kMoveKinds * length;
    check(cudaMemsetAsync(lane.device_counts.data(), 0, n_counts * sizeof(MoveCounts), stream), "clear");
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
    copy_out(lane.rows, lane.device_rows, n * length, stream);
    copy_out(lane.counts, lane.device_counts, n_counts, stream);
    check(cudaEventRecord(lane.done, stream), "event");
  }

  // Of the proposals of the first n particles.
  void start_margins(LaneMemory& lane, const MoveArgs& args, std::uint32_t n) const {
    if (second_look)
      return second_look->margins(args, n, lane.device_target.data(), lane.device_margin.data(), forward,
                                  stream);
    forward.margins(n, proposed.data(), lane.device_target.data(), lane.device_margin.data(),
                    lane.device_other.data(), stream);
  }

  void start_scores(LaneMemory& lane, std::uint32_t n, bool fast) const {
    copy_in(lane.device_rows, lane.rows, n * length, stream);
    copy_in(lane.device_target, lane.target, n, stream);
    if (fast)
      second_look->fast().margins(n, lane.device_rows.data(), lane.device_target.data(),
                                  lane.device_margin.data(), stream);
    else
      forward.margins(n, lane.device_rows.data(), lane.device_target.data(), lane.device_margin.data(),
                      lane.device_other.data(), stream);
    check(cudaGetLastError(), "starting the kernels");
    copy_out(lane.margin, lane.device_margin, n, stream);
    if (!fast) copy_out(lane.other, lane.device_other, n, stream);
    check(cudaEventRecord(lane.done, stream), "event");
  }

  void score(LaneMemory& lane, std::span<const ParticleGroup> groups, bool fast);

  ParticleEngineOptions options;
  std::size_t length;
  DeviceArray<DenseInputs::Table> tables;
  DeviceArray<std::uint32_t> first_row, guide, free;
  DeviceArray<std::uint64_t> last_unit;
  DeviceArray<std::uint32_t> proposed, note;
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
    start_scores(lane, n, fast);
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
  const MoveCounts* all = impl_->lanes[lane]->counts.data() + group * kMoveKinds * length;
  const auto of = [&](MoveKind kind) {
    return std::span(all + static_cast<std::size_t>(kind) * length, length);
  };
  return {of(MoveKind::kSingle), of(MoveKind::kBlock), of(MoveKind::kSuffix)};
}

}  // namespace deeptail::cuda
