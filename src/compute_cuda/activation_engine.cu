// A move is five kernels, and the host only starts them: proposals, the product with L^T, the norm, the
// maxima of the logits, the decision. How many candidates there are and the step size stay on the device.
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
std::vector<T> download(const DeviceArray<T>& from, std::size_t n) {
  std::vector<T> out(n);
  check(cudaMemcpy(out.data(), from.data(), n * sizeof(T), cudaMemcpyDeviceToHost), "copy from the device");
  return out;
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
  Impl(const DenseHead& head, const DensePrior& prior_, MoveKernel kernel, std::size_t max_particles,
       bool plain)
      : prior(prior_),
        propose(prior_.gaussian ? propose_kernel<true>(kernel) : propose_kernel<false>(kernel)),
        room(max_particles),
        scorer(head, room, plain),
        d(scorer.d()),
        stride(scorer.stride()),
        cumulative(head.cumulative),
        u(room * static_cast<std::size_t>(stride)),
        next(u.size()),
        before(u.size()),
        groups(grouped() ? room : 0),
        next_groups(groups.size()),
        parents(room),
        count(1),
        margin(room),
        jump(4 * head.d) {}

  bool grouped() const { return cumulative.size() > 0; }

  // What the moves of a level count, on the device.
  struct Counters {
    DeviceArray<std::uint32_t> open, accepted, open_groups;  // [moves]
    DeviceArray<double> h;                                   // [moves]
    explicit Counters(std::size_t moves) : open(moves), accepted(moves), open_groups(moves), h(moves) {
      open.zero(), accepted.zero(), open_groups.zero();
    }
  };

  StepSizes sizes(const LevelMoves& m, const Counters& c) const {
    return {m.step_size, m.adaptation, m.wanted, m.largest, m.burn_in, c.h.data(), c.accepted.data()};
  }

  // after(): called after each of the five parts.
  template <class After>
  void run_move(const LevelMoves& m, std::size_t move, const Counters& c, const After& after) const {
    std::uint32_t* open = c.open.data() + move;
    const ProposeArgs args{.n = n,
                           .d = d,
                           .stride = stride,
                           .u = u.data(),
                           .proposed = next.data(),
                           .groups = groups.data(),
                           .out = scorer.candidates(open),
                           .prior = prior,
                           .sizes = sizes(m, c),
                           .seed = m.seed,
                           .level = m.number,
                           .move = static_cast<std::uint32_t>(move)};
    propose<<<row_blocks(n), kRowThreads>>>(args);
    after();
    scorer.run(n, open, after);
    scorer.settle(
        n, open,
        {.level = m.level, .proposed = next.data(), .u = u.data(), .accepted = c.accepted.data() + move});
    after();
  }

  void run_group_move(const LevelMoves& m, std::size_t move, const Counters& c) const {
    std::uint32_t* open = c.open_groups.data() + move;
    const ProposeGroupsArgs args{.n = n,
                                 .d = d,
                                 .stride = stride,
                                 .n_groups = static_cast<int>(cumulative.size()),
                                 .u = u.data(),
                                 .groups = groups.data(),
                                 .cumulative = cumulative.data(),
                                 .out = scorer.candidates(open),
                                 .seed = m.seed,
                                 .level = m.number,
                                 .move = static_cast<std::uint32_t>(move)};
    propose_groups<<<row_blocks(n), kRowThreads>>>(args);
    scorer.run(n, open, [] {});
    scorer.settle(n, open, {.level = m.level, .groups = groups.data()});
  }

  void measure_jump(MovesDone& done) const {
    jump_sums<<<(d + kJumpColumns - 1) / kJumpColumns, kJumpThreads>>>(n, d, stride, before.data(), u.data(),
                                                                       jump.data());
    check(cudaGetLastError(), "measuring");
    std::array<double, 4> sum{};
    const std::vector<double> sums = jump.to_host();
    for (std::size_t i = 0; i < sums.size(); ++i) sum[i % 4] += sums[i];
    const double spread = std::sqrt(sum[2] * sum[3]);
    done.mean_squared_jump = sum[0] / (static_cast<double>(n) * d);
    done.correlation = spread > 0.0 ? sum[1] / spread : 1.0;
  }

  DensePrior prior;
  ProposeKernel propose;
  std::size_t room;
  RowScorer scorer;
  int d, stride;
  std::uint32_t n = 0;
  DeviceArray<double> cumulative;
  DeviceArray<float> u, next, before;  // [n, stride]; next: proposed, or where resampling writes
  DeviceArray<std::uint32_t> groups, next_groups, parents, count;
  DeviceArray<float> margin;
  DeviceArray<double> jump;  // [d, 4]
};

ActivationEngine::ActivationEngine(const DenseHead& head, const DensePrior& prior, MoveKernel kernel,
                                   std::size_t max_particles, bool plain) {
  device_name();  // tells when there is none
  impl_ = std::make_unique<Impl>(head, prior, kernel, max_particles, plain);
}
ActivationEngine::~ActivationEngine() = default;

std::size_t ActivationEngine::size() const { return impl_->n; }

void ActivationEngine::set(std::span<const float> u, std::span<const std::uint32_t> groups) {
  Impl& s = *impl_;
  const auto d = static_cast<std::size_t>(s.d);
  if (u.size() / d > s.room) throw Failure("more particles than there is room for");
  s.n = static_cast<std::uint32_t>(u.size() / d);
  upload(s.u, std::span<const float>(padded(u, d, static_cast<std::size_t>(s.stride))));
  upload(s.groups, groups);
}

void ActivationEngine::scores(std::span<float> out) {
  Impl& s = *impl_;
  all_candidates<<<row_blocks(s.n), kRowThreads>>>(s.n, s.d, s.stride, s.u.data(), s.groups.data(),
                                                   s.scorer.candidates(s.count.data()));
  s.scorer.run(s.n, s.count.data(), [] {});
  s.scorer.settle(s.n, s.count.data(), {.margin = s.margin.data()});
  const std::vector<float> found = download(s.margin, s.n);
  std::copy(found.begin(), found.end(), out.begin());
}

void ActivationEngine::resample(std::span<const std::uint32_t> parents) {
  Impl& s = *impl_;
  if (parents.size() > s.room) throw Failure("more particles than there is room for");
  upload(s.parents, parents);
  s.n = static_cast<std::uint32_t>(parents.size());
  copy_parents<<<4 * s.scorer.n_sm(), 128>>>(s.n, s.stride, s.parents.data(), s.u.data(), s.next.data(),
                                             s.groups.data(), s.next_groups.data());
  check(cudaGetLastError(), "resampling");
  std::swap(s.u, s.next);
  std::swap(s.groups, s.next_groups);
}

MovesDone ActivationEngine::move(const LevelMoves& m) {
  Impl& s = *impl_;
  const Impl::Counters counters(m.moves);
  check(cudaMemcpyAsync(s.before.data(), s.u.data(), s.u.size() * sizeof(float), cudaMemcpyDeviceToDevice),
        "copy on the device");
  for (std::size_t move = 0; move < m.moves; ++move) {
    s.run_move(m, move, counters, [] {});
    if (s.grouped() && move % m.group_every == 0) s.run_group_move(m, move, counters);
  }
  MovesDone done{.proposed = static_cast<std::uint64_t>(s.n) * m.moves};
  s.measure_jump(done);
  const auto open = counters.open.to_host(), accepted = counters.accepted.to_host(),
             open_groups = counters.open_groups.to_host();
  for (std::size_t i = 0; i < m.moves; ++i)
    done.accepted += accepted[i], done.scored += open[i] + open_groups[i];
  const double h = counters.h.to_host().back();
  done.step_size = m.moves <= m.burn_in ? s.sizes(m, counters).after(h, accepted.back(), s.n) : h;
  return done;
}

std::vector<float> ActivationEngine::points() const {
  const auto n = static_cast<std::size_t>(impl_->n), d = static_cast<std::size_t>(impl_->d),
             stride = static_cast<std::size_t>(impl_->stride);
  const std::vector<float> rows = download(impl_->u, n * stride);
  std::vector<float> out(n * d);
  for (std::size_t i = 0; i < n; ++i) std::copy_n(rows.data() + i * stride, d, out.data() + i * d);
  return out;
}

std::vector<std::uint32_t> ActivationEngine::groups() const {
  return impl_->grouped() ? download(impl_->groups, impl_->n) : std::vector<std::uint32_t>();
}

ActivationEngine::StageSeconds ActivationEngine::time_stages(const LevelMoves& m) {
  constexpr std::size_t kMarks = 6;
  const Impl::Counters counters(m.moves);
  std::vector<cudaEvent_t> marks(kMarks * m.moves);
  for (cudaEvent_t& mark : marks) check(cudaEventCreate(&mark), "timing");
  for (std::size_t move = 0; move < m.moves; ++move) {
    std::size_t next = kMarks * move;
    const auto mark = [&] { check(cudaEventRecord(marks[next++]), "timing"); };
    mark();
    impl_->run_move(m, move, counters, mark);
  }
  check(cudaDeviceSynchronize(), "timing");
  double sums[kMarks - 1] = {};
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (i % kMarks == 0) continue;
    float ms = 0.0f;
    check(cudaEventElapsedTime(&ms, marks[i - 1], marks[i]), "timing");
    sums[i % kMarks - 1] += ms * 1e-3 / static_cast<double>(m.moves);
  }
  for (const cudaEvent_t mark : marks) cudaEventDestroy(mark);
  return {sums[0], sums[1], sums[2], sums[3], sums[4]};
}

}  // namespace deeptail::cuda
