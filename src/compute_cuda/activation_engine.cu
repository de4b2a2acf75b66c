// A move of all populations is five kernels, and the host only starts them: proposals, the product with L^T, the
// norm, the maxima of the logits, the decision. How many candidates there are and the step sizes stay on the device.
#include "compute_cuda/activation_engine.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "compute_cuda/activations/jump.cuh"
#include "compute_cuda/activations/row_scorer.cuh"
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

using ProposeKernel = void (*)(ProposeArgs);
template <bool kGaussian>
ProposeKernel propose_kernel(MoveKernel kernel) {
  // A Gaussian's metric is constant: MAPLA is MALA.
  constexpr MoveKernel kMapla = kGaussian ? MoveKernel::kMala : MoveKernel::kMapla;
  switch (kernel) {
    case MoveKernel::kRwmh:
      return propose_points<MoveKernel::kRwmh, kGaussian>;
    case MoveKernel::kMapla:
      return propose_points<kMapla, kGaussian>;
    case MoveKernel::kPcn:
      return propose_points<MoveKernel::kPcn, kGaussian>;
    case MoveKernel::kMala:
      break;
  }
  return propose_points<MoveKernel::kMala, kGaussian>;
}
ProposeKernel propose_kernel(MoveKernel kernel, bool gaussian) {
  return gaussian ? propose_kernel<true>(kernel) : propose_kernel<false>(kernel);
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
  Impl(const DenseHead& head_, const DensePrior& prior_, MoveKernel kernel, const EngineRoom& room_, bool plain)
      : head(head_),
        prior(prior_),
        propose(propose_kernel(kernel, prior_.gaussian)),
        propose_tails(propose_kernel(MoveKernel::kPcn, prior_.gaussian)),
        room(room_),
        rows(room.populations * room.particles),
        scorer(head, room.populations, rows, room.target, plain),
        d(scorer.d()),
        stride(scorer.stride()),
        sizes(room.populations, 0),
        cumulative(head.cumulative),
        populations(room.populations),
        moving(room.populations),
        u(rows * static_cast<std::size_t>(stride)),
        next(u.size()),
        before(u.size()),
        groups(grouped() ? rows : 0),
        next_groups(groups.size()),
        parents(room.particles),
        count(1),
        margin(room.particles),
        jump(room.populations * 4 * head.d) {}

  bool grouped() const { return cumulative.size() > 0; }
  std::size_t first_row(std::size_t slot) const { return slot * room.particles; }
  std::size_t first_number(std::size_t slot) const { return first_row(slot) * static_cast<std::size_t>(stride); }
  std::uint32_t* groups_of(const DeviceArray<std::uint32_t>& all, std::size_t slot) const {
    return grouped() ? all.data() + first_row(slot) : nullptr;
  }

  // Moves whose step size adapts, or would, are numbered apart.
  struct Level {
    const MoveSchedule& schedule;
    unsigned n_moving = 0, most = 0;  // populations, particles of the largest
    std::uint32_t n = 0;              // particles of all
    std::size_t sized_moves = 0, sized_burn_in = 0;
    DeviceArray<std::uint32_t> open, open_groups;  // [moves]: of all populations
    DeviceArray<std::uint32_t> accepted;           // [sized moves + 1, slots]: the last row is for the others
    DeviceArray<double> h;                         // [sized moves, slots]
    DeviceArray<std::uint64_t> scored;             // [slots]
    bool is_tail(std::size_t move) const {
      return !schedule.tail_steps.empty() && schedule.tail_steps[move] > 0.0;
    }
    Level(const MoveSchedule& s, std::size_t slots) : schedule(s), open(s.moves), open_groups(s.moves), scored(slots) {
      for (std::size_t move = 0; move < s.moves; ++move)
        if (!is_tail(move)) ++sized_moves, sized_burn_in += move < s.burn_in;
      accepted = DeviceArray<std::uint32_t>((sized_moves + 1) * slots);
      h = DeviceArray<double>(sized_moves * slots);
      open.zero(), open_groups.zero(), accepted.zero(), scored.zero();
    }
  };

  Level begin(const MoveSchedule& schedule, std::span<const LevelMoves> levels) const {
    Level out(schedule, room.populations);
    std::vector<Population> all(room.populations);
    std::vector<std::uint32_t> slots;
    for (const LevelMoves& level : levels) {
      const std::uint32_t n = sizes[level.slot];
      slots.push_back(static_cast<std::uint32_t>(level.slot));
      all[level.slot] = {.first = static_cast<std::uint32_t>(first_row(level.slot)),
                         .n = n,
                         .level = level.level,
                         .number = level.number,
                         .seed = level.seed,
                         .step_size = level.step_size};
      out.most = std::max<unsigned>(out.most, n);
      out.n += n;
    }
    out.n_moving = static_cast<unsigned>(slots.size());
    upload(populations, std::span<const Population>(all));
    upload(moving, std::span<const std::uint32_t>(slots));
    return out;
  }

  Moving who() const { return {populations.data(), moving.data()}; }
  dim3 grid(const Level& level) const { return {row_blocks(level.most), level.n_moving}; }

  StepSizes step_sizes(const Level& c) const {
    return {.first = 0.0,
            .adaptation = c.schedule.adaptation,
            .wanted = c.schedule.wanted,
            .largest = c.schedule.largest,
            .burn_in = c.sized_burn_in,
            .h = c.h.data(),
            .accepted = c.accepted.data(),
            .stride = room.populations};
  }

  // sized: the move's number among those of the main kernel. after(): called after each of the five parts.
  template <class After>
  void run_move(const Level& c, std::size_t move, std::size_t sized, const After& after) const {
    std::uint32_t* open = c.open.data() + move;
    const bool tail = c.is_tail(move);
    const ProposeArgs args{.moving = who(),
                           .d = d,
                           .stride = stride,
                           .u = u.data(),
                           .proposed = next.data(),
                           .groups = groups.data(),
                           .out = scorer.candidates(open, c.scored.data()),
                           .prior = prior,
                           .sizes = step_sizes(c),
                           .sized = sized,
                           .fixed = tail ? c.schedule.tail_steps[move] : 0.0,
                           .move = static_cast<std::uint32_t>(move)};
    (tail ? propose_tails : propose)<<<grid(c), kRowThreads>>>(args);
    after();
    scorer.run(c.n, open, after);
    scorer.settle(c.n, open,
                  {.populations = populations.data(),
                   .proposed = next.data(),
                   .u = u.data(),
                   .accepted = c.accepted.data() + (tail ? c.sized_moves : sized) * room.populations});
    after();
  }

  void run_group_move(const Level& c, std::size_t move) const {
    std::uint32_t* open = c.open_groups.data() + move;
    const ProposeGroupsArgs args{.moving = who(),
                                 .d = d,
                                 .stride = stride,
                                 .n_groups = static_cast<int>(cumulative.size()),
                                 .u = u.data(),
                                 .groups = groups.data(),
                                 .cumulative = cumulative.data(),
                                 .out = scorer.candidates(open, c.scored.data()),
                                 .move = static_cast<std::uint32_t>(move)};
    propose_groups<<<grid(c), kRowThreads>>>(args);
    scorer.run(c.n, open, [] {});
    scorer.settle(c.n, open, {.populations = populations.data(), .groups = groups.data()});
  }

  template <class Mark>
  void run_moves(const Level& c, const Mark& mark) const {
    for (std::size_t move = 0, sized = 0; move < c.schedule.moves; ++move) {
      mark();
      run_move(c, move, sized, mark);
      sized += !c.is_tail(move);
      if (grouped() && move % c.schedule.group_every == 0) run_group_move(c, move);
    }
  }

  std::vector<MovesDone> results(const Level& c, std::span<const LevelMoves> levels) const {
    const dim3 blocks(static_cast<unsigned>((d + kJumpColumns - 1) / kJumpColumns), c.n_moving);
    jump_sums<<<blocks, kJumpThreads>>>(who(), d, stride, before.data(), u.data(), jump.data());
    check(cudaGetLastError(), "measuring");
    const std::vector<double> sums = jump.to_host(), h = c.h.to_host();
    const auto accepted = c.accepted.to_host();
    const auto scored = c.scored.to_host();
    std::vector<MovesDone> out;
    for (const LevelMoves& level : levels) {
      const std::uint32_t n = sizes[level.slot];
      MovesDone& done = out.emplace_back();
      done.proposed = static_cast<std::uint64_t>(n) * c.schedule.moves;
      done.scored = scored[level.slot];
      for (std::size_t i = level.slot; i < accepted.size(); i += room.populations) done.accepted += accepted[i];
      done.step_size = level.step_size;
      if (c.sized_moves > 0) {
        const std::size_t last = (c.sized_moves - 1) * room.populations + level.slot;
        done.step_size =
            c.sized_moves <= c.sized_burn_in ? step_sizes(c).after(h[last], accepted[last], n) : h[last];
      }
      add_jump(std::span(sums).subspan(level.slot * 4 * static_cast<std::size_t>(d), 4 * static_cast<std::size_t>(d)),
               n, done);
    }
    return out;
  }

  void add_jump(std::span<const double> sums, std::uint32_t n, MovesDone& done) const {
    std::array<double, 4> sum{};
    for (std::size_t i = 0; i < sums.size(); ++i) sum[i % 4] += sums[i];
    const double spread = std::sqrt(sum[2] * sum[3]);
    done.mean_squared_jump = sum[0] / (static_cast<double>(n) * d);
    done.correlation = spread > 0.0 ? sum[1] / spread : 1.0;
  }

  DenseHead head;  // for targets to come
  DensePrior prior;
  ProposeKernel propose, propose_tails;
  EngineRoom room;
  std::size_t rows;
  RowScorer scorer;
  int d, stride;
  std::vector<std::uint32_t> sizes;  // [slots]
  DeviceArray<double> cumulative;
  DeviceArray<Population> populations;  // [slots]
  DeviceArray<std::uint32_t> moving;    // slots
  DeviceArray<float> u, next, before;   // [rows, stride]; next: proposed, or where resampling writes
  DeviceArray<std::uint32_t> groups, next_groups, parents, count;
  DeviceArray<float> margin;
  DeviceArray<double> jump;  // [slots, d, 4]
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

std::size_t ActivationEngine::size(std::size_t slot) const { return impl_->sizes[slot]; }

void ActivationEngine::set(std::size_t slot, std::span<const float> u, std::span<const std::uint32_t> groups) {
  Impl& s = *impl_;
  const auto d = static_cast<std::size_t>(s.d);
  if (u.size() / d > s.room.particles) throw Failure("more particles than there is room for");
  s.sizes[slot] = static_cast<std::uint32_t>(u.size() / d);
  const std::vector<float> wide = padded(u, d, static_cast<std::size_t>(s.stride));
  check(cudaMemcpy(s.u.data() + s.first_number(slot), wide.data(), wide.size() * sizeof(float),
                   cudaMemcpyHostToDevice),
        "copy to the device");
  if (!groups.empty())
    check(cudaMemcpy(s.groups_of(s.groups, slot), groups.data(), groups.size_bytes(), cudaMemcpyHostToDevice),
          "copy to the device");
}

void ActivationEngine::scores(std::size_t slot, std::span<float> out) {
  Impl& s = *impl_;
  const std::uint32_t n = s.sizes[slot];
  all_candidates<<<row_blocks(n), kRowThreads>>>(static_cast<std::uint32_t>(slot),
                                                 static_cast<std::uint32_t>(s.first_row(slot)), n, s.d, s.stride,
                                                 s.u.data(), s.groups.data(), s.scorer.candidates(s.count.data()));
  s.scorer.run(n, s.count.data(), [] {});
  s.scorer.settle(n, s.count.data(), {.margin = s.margin.data()});
  const std::vector<float> found = download(s.margin.data(), n);
  std::copy(found.begin(), found.end(), out.begin());
}

void ActivationEngine::resample(std::size_t slot, std::span<const std::uint32_t> parents) {
  Impl& s = *impl_;
  if (parents.size() > s.room.particles) throw Failure("more particles than there is room for");
  upload(s.parents, parents);
  const auto n = s.sizes[slot] = static_cast<std::uint32_t>(parents.size());
  float *u = s.u.data() + s.first_number(slot), *next = s.next.data() + s.first_number(slot);
  std::uint32_t *groups = s.groups_of(s.groups, slot), *next_groups = s.groups_of(s.next_groups, slot);
  copy_parents<<<4 * s.scorer.n_sm(), 128>>>(n, s.stride, s.parents.data(), u, next, groups, next_groups);
  check(cudaGetLastError(), "resampling");
  copy_on_device(u, next, static_cast<std::size_t>(n) * static_cast<std::size_t>(s.stride));
  if (s.grouped()) copy_on_device(groups, next_groups, n);
}

std::vector<MovesDone> ActivationEngine::move(const MoveSchedule& schedule, std::span<const LevelMoves> levels) {
  Impl& s = *impl_;
  const Impl::Level level = s.begin(schedule, levels);
  copy_on_device(s.before.data(), s.u.data(), s.u.size());
  s.run_moves(level, [] {});
  return s.results(level, levels);
}

std::vector<float> ActivationEngine::points(std::size_t slot) const {
  const std::size_t n = impl_->sizes[slot], d = static_cast<std::size_t>(impl_->d),
                    stride = static_cast<std::size_t>(impl_->stride);
  const std::vector<float> rows = download(impl_->u.data() + impl_->first_number(slot), n * stride);
  std::vector<float> out(n * d);
  for (std::size_t i = 0; i < n; ++i) std::copy_n(rows.data() + i * stride, d, out.data() + i * d);
  return out;
}

std::vector<std::uint32_t> ActivationEngine::groups(std::size_t slot) const {
  const std::uint32_t* from = impl_->groups_of(impl_->groups, slot);
  return from != nullptr ? download(from, impl_->sizes[slot]) : std::vector<std::uint32_t>();
}

ActivationEngine::StageSeconds ActivationEngine::time_stages(const MoveSchedule& schedule,
                                                             std::span<const LevelMoves> levels) {
  constexpr std::size_t kMarks = 6;
  const Impl::Level level = impl_->begin(schedule, levels);
  std::vector<cudaEvent_t> marks(kMarks * schedule.moves);
  for (cudaEvent_t& mark : marks) check(cudaEventCreate(&mark), "timing");
  std::size_t next = 0;
  impl_->run_moves(level, [&] { check(cudaEventRecord(marks[next++]), "timing"); });
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
