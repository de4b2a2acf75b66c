#include "estimators/device_particles.h"

#include <algorithm>

#include "compute_cuda/activation_engine.h"
#include "core/random.h"
#include "deeptail/device.h"
#include "model/head/float_level.h"

namespace deeptail {

namespace {

// What CUDA says, as a sentence for the user.
template <class Work>
auto on_device(const Work& work) {
  try {
    return work();
  } catch (const cuda::Failure& failure) {
    throw DeviceError(Device::kCuda, failure.what());
  }
}

cuda::MoveKernel device_kernel(KernelKind kind) {
  switch (kind) {
    case KernelKind::kRwmh:
      return cuda::MoveKernel::kRwmh;
    case KernelKind::kMapla:
      return cuda::MoveKernel::kMapla;
    case KernelKind::kPcn:
      return cuda::MoveKernel::kPcn;
    case KernelKind::kMala:
      break;
  }
  return cuda::MoveKernel::kMala;
}

cuda::DenseHead dense_head(const DeviceParticles::Problem& p) {
  const Head& head = p.head;
  const std::size_t d = head.d_model();
  const PackedMatrix unwhitening = p.whitening.unwhitening();
  cuda::DenseHead out{.d = d,
                      .d_vocab = head.d_vocab(),
                      .unwhitening = {},
                      .means = {},
                      .cumulative = {p.cumulative.begin(), p.cumulative.end()},
                      .ln_w = {},
                      .ln_b = {},
                      .w_u_panels = {head.w_u.panel(0), head.w_u.n_panels() * d * kPanel},
                      .b_u = {head.w_u.bias(), head.w_u.bias() + head.d_vocab()},
                      .target = {p.target.ids().begin(), p.target.ids().end()}};
  out.unwhitening.reserve(d * d);
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j < d; ++j) out.unwhitening.push_back(unwhitening.at(i, j));
  const std::size_t n_groups = p.group_means.empty() ? 1 : p.group_means.size() / d;
  for (std::size_t g = 0; g < n_groups; ++g)
    for (std::size_t j = 0; j < d; ++j)
      out.means.push_back(unwhitening.bias()[j] + (p.group_means.empty() ? 0.0f : p.group_means[g * d + j]));
  if (head.ln_final && !head.ln_final->centred)
    throw DeviceError(Device::kCuda,
                      "ga-amls on the device takes a layer norm before the unembedding, not an RMS norm");
  if (head.ln_final) {
    out.ln_w.assign(head.ln_final->weight.begin(), head.ln_final->weight.end());
    out.ln_b.assign(head.ln_final->bias.begin(), head.ln_final->bias.end());
    out.eps = head.ln_final->eps;
  }
  return out;
}

}  // namespace

struct DeviceParticles::Impl {
  Impl(const Problem& p, std::size_t n_particles, ThreadPool& threads)
      : problem(p),
        pool(threads),
        engine(dense_head(p), {.gaussian = p.prior.gaussian(), .nu = p.prior.nu(), .scale = p.prior.scale()},
               device_kernel(p.kernel.kind), n_particles, p.plain) {}

  cuda::LevelMoves moves(double level, std::size_t k, std::uint64_t seed) const {
    const KernelConfig& kernel = problem.kernel;
    const std::vector<double>& frozen = kernel.frozen_steps;
    return {.level = float_level(level),  // the engine compares in fp32
            .number = k,
            .seed = seed,
            .moves = kernel.moves,
            .burn_in = frozen.empty() ? kernel.burn_in : 0,
            .group_every = kernel.group_every,
            .step_size = frozen.empty() ? h : frozen[std::min(k, frozen.size() - 1)],
            .adaptation = kernel.adaptation,
            .wanted = kernel.wanted(),
            .largest = kernel.kind == KernelKind::kPcn ? 0.5 : 1e300};
  }

  Problem problem;
  ThreadPool& pool;
  cuda::ActivationEngine engine;
  double h = 0.0;  // goes on from level to level
  std::uint64_t score_evals = 0;
  std::vector<float> downloaded;
};

DeviceParticles::DeviceParticles(const Problem& problem, std::size_t n_particles, ThreadPool& pool)
    : impl_(on_device([&] { return std::make_unique<Impl>(problem, n_particles, pool); })) {}
DeviceParticles::~DeviceParticles() = default;

void DeviceParticles::sample(std::size_t n, std::uint64_t seed) {
  const Problem& p = impl_->problem;
  impl_->h = p.kernel.step_size;
  const StartPoints start = draw_start(p.prior, p.cumulative, p.start, n, seed, impl_->pool);
  on_device([&] { impl_->engine.set(start.u, start.groups); });
}

std::size_t DeviceParticles::size() const { return impl_->engine.size(); }

void DeviceParticles::scores(std::span<double> out) {
  std::vector<float> found(out.size());
  on_device([&] { impl_->engine.scores(found); });
  std::copy(found.begin(), found.end(), out.begin());
  impl_->score_evals += out.size();
}

void DeviceParticles::resample(std::span<const std::uint32_t> parents) {
  on_device([&] { impl_->engine.resample(parents); });
}

MoveStats DeviceParticles::move(double level, std::size_t k, std::uint64_t seed) {
  const cuda::MovesDone done = on_device([&] { return impl_->engine.move(impl_->moves(level, k, seed)); });
  impl_->h = done.step_size;
  impl_->score_evals += done.scored;
  return {.proposed = done.proposed,
          .accepted = done.accepted,
          .moves = impl_->problem.kernel.moves,
          .step_size = done.step_size,
          .mean_squared_jump = done.mean_squared_jump,
          .parent_correlation = done.correlation};
}

ConstRows DeviceParticles::rows() {
  impl_->downloaded = on_device([&] { return impl_->engine.points(); });
  return {impl_->downloaded.data(), impl_->problem.prior.dim()};
}

std::uint64_t DeviceParticles::score_evals() const { return impl_->score_evals; }
cuda::ActivationEngine& DeviceParticles::engine() { return impl_->engine; }

}  // namespace deeptail
