// The moves of one level, of several populations together: what is on the device, and the kernels in their order.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "compute_cuda/activation_engine.h"
#include "compute_cuda/activations/jump.cuh"
#include "compute_cuda/activations/row_scorer.cuh"

namespace deeptail::cuda {

using ProposeKernel = void (*)(ProposeArgs);
template <bool kGaussian>
inline ProposeKernel propose_kernel(MoveKernel kernel) {
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
inline ProposeKernel propose_kernel(MoveKernel kernel, bool gaussian) {
  return gaussian ? propose_kernel<true>(kernel) : propose_kernel<false>(kernel);
}

// The particles of all populations, each with room for as many.
struct PointMemory {
  std::size_t slots, particles;  // particles: of a slot
  int d, stride;
  std::vector<std::uint32_t> sizes;     // [slots]
  DeviceArray<double> cumulative;       // of the groups
  DeviceArray<Population> populations;  // [slots]
  DeviceArray<std::uint32_t> moving;    // slots
  DeviceArray<float> u, next, before;   // [rows, stride]; next: proposed, or where resampling writes
  DeviceArray<std::uint8_t> flipped;    // [rows]: while moving, it is in next; else 0
  DeviceArray<std::uint32_t> groups, next_groups;  // [rows], or empty
  DeviceArray<double> jump;                        // [slots, d, 4]

  PointMemory(const DenseHead& head, const EngineRoom& room, int stride_)
      : slots(room.populations),
        particles(room.particles),
        d(static_cast<int>(head.d)),
        stride(stride_),
        sizes(slots, 0),
        cumulative(head.cumulative),
        populations(slots),
        moving(slots),
        u(rows() * static_cast<std::size_t>(stride)),
        next(u.size()),
        before(u.size()),
        flipped(rows()),
        groups(grouped() ? rows() : 0),
        next_groups(groups.size()),
        jump(slots * 4 * head.d) {
    flipped.zero();
  }

  PointPlaces places() const { return {{u.data(), next.data()}, flipped.data(), stride}; }
  bool grouped() const { return cumulative.size() > 0; }
  std::size_t rows() const { return slots * particles; }
  std::size_t first_row(std::size_t slot) const { return slot * particles; }
  std::size_t first_number(std::size_t slot) const {
    return first_row(slot) * static_cast<std::size_t>(stride);
  }
  std::uint32_t* groups_of(const DeviceArray<std::uint32_t>& all, std::size_t slot) const {
    return grouped() ? all.data() + first_row(slot) : nullptr;
  }
};

// What moves a point: the kernel, and that for the tails.
struct Proposer {
  DensePrior prior;
  ProposeKernel main, tails;
  Proposer(const DensePrior& p, MoveKernel kernel)
      : prior(p),
        main(propose_kernel(kernel, p.gaussian)),
        tails(propose_kernel(MoveKernel::kPcn, p.gaussian)) {}
};

// Moves whose step size adapts, or would, are numbered apart: "sized" ones.
class LevelRun {
 public:
  LevelRun(const Proposer& proposer, const RowScorer& scorer, const PointMemory& memory,
           const MoveSchedule& schedule, std::span<const LevelMoves> levels)
      : proposer_(proposer),
        scorer_(scorer),
        memory_(memory),
        schedule_(schedule),
        levels_(levels),
        open_(schedule.moves),
        open_groups_(schedule.moves),
        scored_(memory.slots) {
    for (std::size_t move = 0; move < schedule.moves; ++move)
      if (!is_tail(move)) ++sized_moves_, sized_burn_in_ += move < schedule.burn_in;
    accepted_ = DeviceArray<std::uint32_t>((sized_moves_ + 1) * memory.slots);
    h_ = DeviceArray<double>(sized_moves_ * memory.slots);
    open_.zero(), open_groups_.zero(), accepted_.zero(), scored_.zero();
    upload_populations();
  }

  // mark(): called before each move, and after each of its five parts.
  template <class Mark>
  void run(const Mark& mark) const {
    for (std::size_t move = 0, sized = 0; move < schedule_.moves; ++move) {
      mark();
      run_move(move, sized, mark);
      sized += !is_tail(move);
      if (memory_.grouped() && move % schedule_.group_every == 0) run_group_move(move);
    }
    gather_points<<<grid(), kRowThreads>>>(moving(), memory_.d, memory_.places());
    check(cudaGetLastError(), "gathering");
  }

  // In the order of the levels; memory.before holds where particles were.
  std::vector<MovesDone> results() const {
    const PointMemory& m = memory_;
    const dim3 blocks(static_cast<unsigned>((m.d + kJumpColumns - 1) / kJumpColumns), n_moving_);
    jump_sums<<<blocks, kJumpThreads>>>(moving(), m.d, m.stride, m.before.data(), m.u.data(), m.jump.data());
    check(cudaGetLastError(), "measuring");
    const std::vector<double> sums = m.jump.to_host(), h = h_.to_host();
    const auto accepted = accepted_.to_host();
    const auto scored = scored_.to_host();
    const std::size_t numbers = 4 * static_cast<std::size_t>(m.d);
    std::vector<MovesDone> out;
    for (const LevelMoves& level : levels_) {
      const std::uint32_t n = m.sizes[level.slot];
      MovesDone& done = out.emplace_back();
      done.proposed = static_cast<std::uint64_t>(n) * schedule_.moves;
      done.scored = scored[level.slot];
      for (std::size_t i = level.slot; i < accepted.size(); i += m.slots) done.accepted += accepted[i];
      done.step_size = level.step_size;
      if (sized_moves_ > 0) {
        const std::size_t last = (sized_moves_ - 1) * m.slots + level.slot;
        done.step_size = sized_moves_ <= sized_burn_in_ ? sizes().after(h[last], accepted[last], n) : h[last];
      }
      add_jump(std::span(sums).subspan(level.slot * numbers, numbers), n, done);
    }
    return out;
  }

 private:
  bool is_tail(std::size_t move) const {
    return !schedule_.tail_steps.empty() && schedule_.tail_steps[move] > 0.0;
  }
  Moving moving() const { return {memory_.populations.data(), memory_.moving.data()}; }
  dim3 grid() const { return {row_blocks(most_), n_moving_}; }

  void upload_populations() {
    std::vector<Population> all(memory_.slots);
    std::vector<std::uint32_t> slots;
    for (const LevelMoves& level : levels_) {
      const std::uint32_t n = memory_.sizes[level.slot];
      slots.push_back(static_cast<std::uint32_t>(level.slot));
      all[level.slot] = {.first = static_cast<std::uint32_t>(memory_.first_row(level.slot)),
                         .n = n,
                         .level = level.level,
                         .number = level.number,
                         .seed = level.seed,
                         .step_size = level.step_size};
      most_ = std::max<unsigned>(most_, n);
      n_ += n;
    }
    n_moving_ = static_cast<unsigned>(slots.size());
    upload(memory_.populations, std::span<const Population>(all));
    upload(memory_.moving, std::span<const std::uint32_t>(slots));
  }

  StepSizes sizes() const {
    return {.first = 0.0,
            .adaptation = schedule_.adaptation,
            .wanted = schedule_.wanted,
            .largest = schedule_.largest,
            .burn_in = sized_burn_in_,
            .h = h_.data(),
            .accepted = accepted_.data(),
            .stride = memory_.slots};
  }

  template <class After>
  void run_move(std::size_t move, std::size_t sized, const After& after) const {
    std::uint32_t* open = open_.data() + move;
    const bool tail = is_tail(move);
    const PointMemory& m = memory_;
    const ProposeArgs args{.moving = moving(),
                           .d = m.d,
                           .points = m.places(),
                           .groups = m.groups.data(),
                           .out = scorer_.candidates(open, scored_.data()),
                           .prior = proposer_.prior,
                           .sizes = sizes(),
                           .sized = sized,
                           .fixed = tail ? schedule_.tail_steps[move] : 0.0,
                           .move = static_cast<std::uint32_t>(move)};
    (tail ? proposer_.tails : proposer_.main)<<<grid(), kRowThreads>>>(args);
    after();
    scorer_.run(n_, open, after);
    scorer_.settle(n_, open,
                   {.populations = m.populations.data(),
                    .flipped = m.flipped.data(),
                    .accepted = accepted_.data() + (tail ? sized_moves_ : sized) * m.slots});
    after();
  }

  void run_group_move(std::size_t move) const {
    std::uint32_t* open = open_groups_.data() + move;
    const PointMemory& m = memory_;
    const ProposeGroupsArgs args{.moving = moving(),
                                 .d = m.d,
                                 .n_groups = static_cast<int>(m.cumulative.size()),
                                 .points = m.places(),
                                 .groups = m.groups.data(),
                                 .cumulative = m.cumulative.data(),
                                 .out = scorer_.candidates(open, scored_.data()),
                                 .move = static_cast<std::uint32_t>(move)};
    propose_groups<<<grid(), kRowThreads>>>(args);
    scorer_.run(n_, open, [] {});
    scorer_.settle(n_, open, {.populations = m.populations.data(), .groups = m.groups.data()});
  }

  void add_jump(std::span<const double> sums, std::uint32_t n, MovesDone& done) const {
    std::array<double, 4> sum{};
    for (std::size_t i = 0; i < sums.size(); ++i) sum[i % 4] += sums[i];
    const double spread = std::sqrt(sum[2] * sum[3]);
    done.mean_squared_jump = sum[0] / (static_cast<double>(n) * memory_.d);
    done.correlation = spread > 0.0 ? sum[1] / spread : 1.0;
  }

  const Proposer& proposer_;
  const RowScorer& scorer_;
  const PointMemory& memory_;
  const MoveSchedule& schedule_;
  std::span<const LevelMoves> levels_;
  unsigned n_moving_ = 0, most_ = 0;  // populations, particles of the largest
  std::uint32_t n_ = 0;               // particles of all
  std::size_t sized_moves_ = 0, sized_burn_in_ = 0;
  DeviceArray<std::uint32_t> open_, open_groups_;  // [moves]: of all populations
  DeviceArray<std::uint32_t> accepted_;            // [sized moves + 1, slots]: the last row is for the others
  DeviceArray<double> h_;                          // [sized moves, slots]
  DeviceArray<std::uint64_t> scored_;              // [slots]
};

}  // namespace deeptail::cuda
