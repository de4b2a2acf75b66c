// A move is five kernels, and the host only starts them: proposals, the product with L^T, the norm, the
// maxima of the logits, the decision. How many candidates there are and the step size stay on the device.
#include "compute_cuda/activation_engine.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "compute_cuda/jump.cuh"
#include "compute_cuda/score_rows.cuh"
#include "compute_cuda/split_products.h"
#include "compute_cuda/truth_engine.h"

namespace deeptail::cuda {

namespace {

std::size_t up_to(std::size_t n, std::size_t multiple) { return (n + multiple - 1) / multiple * multiple; }
unsigned row_blocks(std::size_t n) { return static_cast<unsigned>((n + kRowWarps - 1) / kRowWarps); }

// [n, d] to [n, stride], zeros behind.
std::vector<float> padded(std::span<const float> rows, std::size_t d, std::size_t stride) {
  std::vector<float> out(rows.size() / d * stride, 0.0f);
  for (std::size_t i = 0; i < rows.size() / d; ++i)
    std::copy_n(rows.data() + i * d, d, out.data() + i * stride);
  return out;
}

template <class T>
void upload(const DeviceArray<T>& to, std::span<const T> from) {
  if (!from.empty())
    check(cudaMemcpy(to.data(), from.data(), from.size_bytes(), cudaMemcpyHostToDevice),
          "copy to the device");
}
template <class T>
std::vector<T> download(const DeviceArray<T>& from, std::size_t n) {
  std::vector<T> out(n);
  check(cudaMemcpy(out.data(), from.data(), n * sizeof(T), cudaMemcpyDeviceToHost), "copy from the device");
  return out;
}

// L^T times a power of two that brings its largest number near 2^12, so that small ones keep their digits in
// fp16.
struct ScaledUnwhitening {
  PackedWeights weights;
  float unscale = 1.0f;
  ScaledUnwhitening(const DenseHead& head, std::size_t stride) {
    float largest = 0.0f;
    for (const float l : head.unwhitening) largest = std::max(largest, std::abs(l));
    const int exponent = largest > 0.0f && std::isfinite(largest) ? 12 - std::ilogb(largest) : 0;
    unscale = std::ldexp(1.0f, -exponent);
    std::vector<float> scaled = padded(head.unwhitening, head.d, stride);
    for (float& l : scaled) l = std::ldexp(l, exponent);
    weights = PackedWeights(scaled.data(), head.d, stride);
  }
};

// W_U as column_maxima.cuh takes it.
struct DeviceColumns {
  int width, n_tiles;
  DeviceArray<__half> high, low;
  ColumnNorms norms{};

  explicit DeviceColumns(const DenseHead& head)
      : width(static_cast<int>(up_to(head.d, kTileDepth))),
        n_tiles(static_cast<int>(up_to(head.d_vocab, kMaximaColumns) / kMaximaColumns)),
        high(static_cast<std::size_t>(n_tiles) * kMaximaColumns * static_cast<std::size_t>(width)),
        low(high.size()) {
    const DeviceArray<float> panels(head.w_u_panels.size()), found(2);
    upload(panels, head.w_u_panels);
    found.zero();
    pack_columns<<<n_tiles, kMaximaColumns>>>(panels.data(), static_cast<int>(head.d),
                                              static_cast<int>(head.d_vocab), width, high.data(), low.data(),
                                              found.data());
    check(cudaGetLastError(), "packing the unembedding");
    const std::vector<float> values = found.to_host();
    norms = {values[0], values[1]};
    if (!std::isfinite(norms.largest) || !std::isfinite(norms.largest_rest))
      throw Failure("the unembedding has weights beyond the range of fp16");
  }
  ColumnWeights view() const { return {high.data(), low.data(), width}; }
};

using ProposeKernel = void (*)(ProposeArgs);
template <bool kGaussian>
ProposeKernel propose_kernel(MoveKernel kernel) {
  switch (kernel) {
    case MoveKernel::kRwmh:
      return propose_points<MoveKernel::kRwmh, kGaussian>;
    case MoveKernel::kMapla:
      // A Gaussian's metric is constant: MAPLA is MALA.
      return propose_points < kGaussian ? MoveKernel::kMala : MoveKernel::kMapla, kGaussian > ;
    case MoveKernel::kPcn:
      return propose_points<MoveKernel::kPcn, kGaussian>;
    case MoveKernel::kMala:
      break;
  }
  return propose_points<MoveKernel::kMala, kGaussian>;
}

// Column j of W_U.
std::vector<float> column_of(const DenseHead& head, std::size_t j) {
  std::vector<float> out(head.d);
  for (std::size_t k = 0; k < head.d; ++k) out[k] = head.w_u_panels[(j / 16 * head.d + k) * 16 + j % 16];
  return out;
}

}  // namespace

struct ActivationEngine::Impl {
  Impl(const DenseHead& head, const DensePrior& prior_, MoveKernel kernel, std::size_t max_particles)
      : prior(prior_),
        propose(prior_.gaussian ? propose_kernel<true>(kernel) : propose_kernel<false>(kernel)),
        d(head.d),
        stride(up_to(head.d, 8)),
        room(max_particles),
        eps(head.eps),
        n_targets(static_cast<int>(head.target.size())),
        unwhitening(head, stride),
        columns(head),
        means(padded(head.means, d, stride)),
        ln_w(head.ln_w),
        ln_b(head.ln_b),
        cumulative(head.cumulative),
        u(room * stride),
        next(room * stride),
        before(room * stride),
        x(room * stride),
        candidates(room, stride),
        y(room, head.d),
        which(room),
        groups(grouped() ? room : 0),
        next_groups(groups.size()),
        candidate_groups(groups.size()),
        parents(room),
        count(1),
        own(room),
        error(room),
        margin(room),
        maxima(room * static_cast<std::size_t>(columns.n_tiles)),
        jump(4 * d) {
    set_target(head);
    u.zero(), next.zero();
    int device = 0;
    check(cudaGetDevice(&device), "device");
    check(cudaDeviceGetAttribute(&n_sm, cudaDevAttrMultiProcessorCount, device), "device");
    int major = 0, minor = 0;
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "device");
    check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "device");
    resident = columns.width <= kResidentPieces * kTileDepth;
    maxima_bytes = major != 9 || minor != 0 ? kOtherMaximaBytes
                   : resident               ? static_cast<int>(sizeof(MaximaShared<true>))
                                            : static_cast<int>(sizeof(MaximaShared<false>));
    check(cudaFuncSetAttribute(maxima_kernel(), cudaFuncAttributeMaxDynamicSharedMemorySize, maxima_bytes),
          "shared memory");
    check(cudaFuncSetAttribute(settle_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, settle_bytes()),
          "shared memory");
  }

  bool grouped() const { return cumulative.size() > 0; }
  void (*maxima_kernel() const)(MaximaArgs) { return resident ? column_maxima<true> : column_maxima<false>; }
  int settle_bytes() const { return static_cast<int>(sizeof(float)) * (columns.width + columns.n_tiles); }

  void set_target(const DenseHead& head) {
    std::vector<float> low(static_cast<std::size_t>(columns.n_tiles) * kMaximaColumns, -1e30f), w, b;
    std::copy(head.b_u.begin(), head.b_u.end(), low.begin());
    for (const std::uint32_t id : head.target) {
      const std::vector<float> column = column_of(head, id);
      w.insert(w.end(), column.begin(), column.end());
      b.push_back(head.b_u[id]);
      low[id] = -1e30f;
    }
    bias = DeviceArray<float>(low);
    target_w = DeviceArray<float>(padded(w, d, stride));
    target_b = DeviceArray<float>(b);
  }

  Candidates waiting(std::uint32_t* n_candidates) const {
    return {candidates.view(), which.data(), candidate_groups.data(), n_candidates};
  }

  // Candidates to y, own, error and maxima. after: called between the parts.
  template <class After>
  void run_scores(const std::uint32_t* n_candidates, const After& after) const {
    const auto rows = static_cast<std::uint32_t>(n);
    product_to_floats(
        {.a = candidates.view(), .n = rows, .w = unwhitening.weights.view(), .n_device = n_candidates},
        x.data(), static_cast<int>(stride), nullptr);
    after();
    const NormaliseArgs normalise{.n = rows,
                                  .n_device = n_candidates,
                                  .d = static_cast<int>(d),
                                  .stride = static_cast<int>(stride),
                                  .unscale = unwhitening.unscale,
                                  .x = x.data(),
                                  .means = means.data(),
                                  .groups = candidate_groups.data(),
                                  .ln_w = ln_w.data(),
                                  .ln_b = ln_b.data(),
                                  .eps = eps,
                                  .y16 = y.view().high,
                                  .width = columns.width,
                                  .n_targets = n_targets,
                                  .target_w = target_w.data(),
                                  .target_b = target_b.data(),
                                  .norms = columns.norms,
                                  .own = own.data(),
                                  .error = error.data()};
    normalise_rows<<<row_blocks(n), kRowThreads>>>(normalise);
    after();
    const MaximaArgs args{.y = y.view().high,
                          .w = columns.high.data(),
                          .bias = bias.data(),
                          .n = rows,
                          .n_device = n_candidates,
                          .width = columns.width,
                          .n_tiles = columns.n_tiles,
                          .maxima = maxima.data()};
    maxima_kernel()<<<n_sm, kMaximaThreads, maxima_bytes>>>(args);
    after();
  }

  void settle(const std::uint32_t* n_candidates, float level, const float* proposed, std::uint32_t* accepted,
              float* margins) const {
    const SettleArgs args{.n = static_cast<std::uint32_t>(n),
                          .n_device = n_candidates,
                          .d = static_cast<int>(d),
                          .stride = static_cast<int>(stride),
                          .n_tiles = columns.n_tiles,
                          .y = x.data(),
                          .maxima = maxima.data(),
                          .own = own.data(),
                          .error = error.data(),
                          .w = columns.view(),
                          .bias = bias.data(),
                          .level = level,
                          .which = which.data(),
                          .proposed = proposed,
                          .groups = candidate_groups.data(),
                          .u = u.data(),
                          .particle_groups = groups.data(),
                          .accepted = accepted,
                          .margin = margins};
    settle_rows<<<static_cast<unsigned>(n), kSettleThreads, settle_bytes()>>>(args);
    check(cudaGetLastError(), "starting the kernels");
  }

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

  template <class After>
  void run_move(const LevelMoves& m, std::size_t move, const Counters& c, const After& after) const {
    const ProposeArgs args{.n = static_cast<std::uint32_t>(n),
                           .d = static_cast<int>(d),
                           .stride = static_cast<int>(stride),
                           .u = u.data(),
                           .proposed = next.data(),
                           .groups = groups.data(),
                           .out = waiting(c.open.data() + move),
                           .prior = prior,
                           .sizes = sizes(m, c),
                           .seed = m.seed,
                           .level = m.number,
                           .move = static_cast<std::uint32_t>(move)};
    propose<<<row_blocks(n), kRowThreads>>>(args);
    after();
    run_scores(c.open.data() + move, after);
    settle(c.open.data() + move, m.level, next.data(), c.accepted.data() + move, nullptr);
    after();
  }

  void run_group_move(const LevelMoves& m, std::size_t move, const Counters& c) const {
    const ProposeGroupsArgs args{.n = static_cast<std::uint32_t>(n),
                                 .d = static_cast<int>(d),
                                 .stride = static_cast<int>(stride),
                                 .n_groups = static_cast<int>(cumulative.size()),
                                 .u = u.data(),
                                 .groups = groups.data(),
                                 .cumulative = cumulative.data(),
                                 .out = waiting(c.open_groups.data() + move),
                                 .seed = m.seed,
                                 .level = m.number,
                                 .move = static_cast<std::uint32_t>(move)};
    propose_groups<<<row_blocks(n), kRowThreads>>>(args);
    run_scores(c.open_groups.data() + move, [] {});
    settle(c.open_groups.data() + move, m.level, nullptr, nullptr, nullptr);
  }

  void measure_jump(MovesDone& done) const {
    jump_sums<<<static_cast<unsigned>((d + kJumpColumns - 1) / kJumpColumns), kJumpThreads>>>(
        static_cast<std::uint32_t>(n), static_cast<int>(d), static_cast<int>(stride), before.data(), u.data(),
        jump.data());
    check(cudaGetLastError(), "measuring");
    std::array<double, 4> sum{};
    const std::vector<double> sums = jump.to_host();
    for (std::size_t i = 0; i < sums.size(); ++i) sum[i % 4] += sums[i];
    const double spread = std::sqrt(sum[2] * sum[3]);
    done.mean_squared_jump = sum[0] / (static_cast<double>(n) * static_cast<double>(d));
    done.correlation = spread > 0.0 ? sum[1] / spread : 1.0;
  }

  DensePrior prior;
  ProposeKernel propose;
  std::size_t d, stride, room, n = 0;
  float eps;
  int n_targets, n_sm = 0, maxima_bytes = 0;
  bool resident = true;
  ScaledUnwhitening unwhitening;
  DeviceColumns columns;
  DeviceArray<float> means, ln_w, ln_b;
  DeviceArray<double> cumulative;
  DeviceArray<float> bias, target_w, target_b;
  DeviceArray<float> u, next, before;  // [n, stride]; next: proposed, or where resampling writes
  DeviceArray<float> x;                // [n, stride]: of candidates
  SplitBuffer candidates, y;
  DeviceArray<std::uint32_t> which, groups, next_groups, candidate_groups, parents, count;
  DeviceArray<float> own, error, margin, maxima;
  DeviceArray<double> jump;  // [d, 4]
};

namespace {

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

ActivationEngine::ActivationEngine(const DenseHead& head, const DensePrior& prior, MoveKernel kernel,
                                   std::size_t max_particles) {
  device_name();  // tells when there is none
  impl_ = std::make_unique<Impl>(head, prior, kernel, max_particles);
}
ActivationEngine::~ActivationEngine() = default;

std::size_t ActivationEngine::size() const { return impl_->n; }

void ActivationEngine::set(std::span<const float> u, std::span<const std::uint32_t> groups) {
  impl_->n = u.size() / impl_->d;
  if (impl_->n > impl_->room) throw Failure("more particles than there is room for");
  upload(impl_->u, std::span<const float>(padded(u, impl_->d, impl_->stride)));
  upload(impl_->groups, groups);
}

void ActivationEngine::scores(std::span<float> out) {
  Impl& s = *impl_;
  all_candidates<<<row_blocks(s.n), kRowThreads>>>(static_cast<std::uint32_t>(s.n), static_cast<int>(s.d),
                                                   static_cast<int>(s.stride), s.u.data(), s.groups.data(),
                                                   s.waiting(s.count.data()));
  s.run_scores(s.count.data(), [] {});
  s.settle(s.count.data(), 0.0f, nullptr, nullptr, s.margin.data());
  const std::vector<float> found = download(s.margin, s.n);
  std::copy(found.begin(), found.end(), out.begin());
}

void ActivationEngine::resample(std::span<const std::uint32_t> parents) {
  Impl& s = *impl_;
  if (parents.size() > s.room) throw Failure("more particles than there is room for");
  upload(s.parents, parents);
  s.n = parents.size();
  copy_parents<<<4 * s.n_sm, 128>>>(static_cast<std::uint32_t>(s.n), static_cast<int>(s.stride),
                                    s.parents.data(), s.u.data(), s.next.data(), s.groups.data(),
                                    s.next_groups.data());
  check(cudaGetLastError(), "resampling");
  std::swap(s.u, s.next);
  std::swap(s.groups, s.next_groups);
}

MovesDone ActivationEngine::move(const LevelMoves& m) {
  Impl& s = *impl_;
  const Impl::Counters counters(m.moves);
  check(
      cudaMemcpyAsync(s.before.data(), s.u.data(), s.n * s.stride * sizeof(float), cudaMemcpyDeviceToDevice),
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
  done.step_size = m.moves <= m.burn_in
                       ? s.sizes(m, counters).after(h, accepted.back(), static_cast<std::uint32_t>(s.n))
                       : h;
  return done;
}

std::vector<float> ActivationEngine::points() const {
  const std::vector<float> rows = download(impl_->u, impl_->n * impl_->stride);
  std::vector<float> out(impl_->n * impl_->d);
  for (std::size_t i = 0; i < impl_->n; ++i)
    std::copy_n(rows.data() + i * impl_->stride, impl_->d, out.data() + i * impl_->d);
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
