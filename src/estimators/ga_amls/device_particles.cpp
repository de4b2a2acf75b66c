#include "estimators/ga_amls/device_particles.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>

#include "compute_cuda/activation_engine.h"
#include "core/random.h"
#include "core/stopwatch.h"
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

cuda::DenseHead dense_head(const DevicePopulations::Problem& p) {
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
                      .b_u = {head.w_u.bias(), head.w_u.bias() + head.d_vocab()}};
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

cuda::MoveSchedule schedule_of(const KernelConfig& kernel, const ProductPrior& prior) {
  cuda::MoveSchedule out{.moves = kernel.moves,
                         .burn_in = kernel.frozen_steps.empty() ? kernel.burn_in : 0,
                         .group_every = kernel.group_every,
                         .adaptation = kernel.adaptation,
                         .wanted = kernel.wanted(),
                         .largest = kernel.kind == KernelKind::kPcn ? 0.5 : 1e300};
  if (kernel.tail_every == 0) return out;
  for (std::size_t move = 0; move < kernel.moves; ++move)
    out.tail_steps.push_back(kernel.kind_of(move, prior) != kernel.kind ? kernel.tail_step(move) : 0.0);
  return out;
}

}  // namespace

// Everything on the device goes through one mutex; moves wait until all populations that are under way want theirs.
struct DevicePopulations::Impl {
  Impl(const Problem& p, const Room& room)
      : problem(p),
        schedule(schedule_of(p.kernel, p.prior)),
        taken(fitting(p, room), false),
        engine(dense_head(p), {.gaussian = p.prior.gaussian(), .nu = p.prior.nu(), .scale = p.prior.scale()},
               device_kernel(p.kernel.kind),
               {.populations = taken.size(), .particles = room.particles, .target = room.target}, p.plain) {}

  static std::size_t fitting(const Problem& p, const Room& room) {
    if (room.populations == 1) return 1;
    return std::min(room.populations, cuda::ActivationEngine::fitting(p.head.d_model(), p.head.d_vocab(),
                                                                      room.particles, p.kernel.moves));
  }

  // A population's level, until it is done: copies, moves, and then their scores, which will be asked for next.
  struct Request {
    cuda::LevelMoves level;
    std::span<const std::uint32_t> parents;  // empty: they are copied already
    cuda::MovesDone done = {};
    std::vector<float> scores = {};
    double seconds = 0.0;
    bool finished = false;
    std::exception_ptr error = {};
  };

  std::size_t take_slot() {
    const std::lock_guard lock(waiting_mutex);
    const auto found = std::find(taken.begin(), taken.end(), false);
    if (found == taken.end()) throw std::logic_error("more populations than there is room for");
    *found = true;
    return static_cast<std::size_t>(found - taken.begin());
  }
  void give_slot(std::size_t slot) {
    const std::lock_guard lock(waiting_mutex);
    taken[slot] = false;
  }
  void join() {
    const std::lock_guard lock(waiting_mutex);
    ++under_way;
  }
  void leave() {
    const std::lock_guard lock(waiting_mutex);
    --under_way;
    wake.notify_all();  // all others may be waiting
  }

  // Whoever sees that all are waiting does the work.
  void run(Request& own) {
    std::unique_lock lock(waiting_mutex);
    waiting.push_back(&own);
    wake.notify_all();
    wake.wait(lock, [&] { return own.finished || waiting.size() == under_way; });
    if (!own.finished) {
      const std::vector<Request*> batch = std::move(waiting);
      waiting.clear();
      lock.unlock();
      run_batch(batch);
      lock.lock();
      for (Request* request : batch) request->finished = true;
      wake.notify_all();
    }
    if (own.error) std::rethrow_exception(own.error);
  }

  void run_batch(std::span<Request* const> batch) {
    try {
      const std::lock_guard lock(device_mutex);
      const Stopwatch stopwatch;
      std::vector<cuda::LevelMoves> levels;
      std::vector<std::size_t> slots;
      for (const Request* request : batch) {
        levels.push_back(request->level);
        slots.push_back(request->level.slot);
        if (!request->parents.empty()) engine.resample(request->level.slot, request->parents);
      }
      const std::vector<cuda::MovesDone> done = engine.move(schedule, levels);
      std::vector<std::vector<float>> scores = engine.scores(slots);
      for (std::size_t i = 0; i < batch.size(); ++i) {
        batch[i]->done = done[i];
        batch[i]->scores = std::move(scores[i]);
        batch[i]->seconds = stopwatch.seconds() / static_cast<double>(batch.size());
      }
    } catch (...) {
      for (Request* request : batch) request->error = std::current_exception();
    }
  }

  Problem problem;
  cuda::MoveSchedule schedule;
  std::vector<bool> taken;  // [slots]
  cuda::ActivationEngine engine;
  std::mutex device_mutex, waiting_mutex;
  std::condition_variable wake;
  std::vector<Request*> waiting;
  std::size_t under_way = 0;  // populations that were drawn and not yet left
};

DevicePopulations::DevicePopulations(const Problem& problem, const Room& room)
    : impl_(on_device([&] { return std::make_unique<Impl>(problem, room); })) {}
DevicePopulations::~DevicePopulations() = default;
std::size_t DevicePopulations::room() const { return impl_->taken.size(); }
cuda::ActivationEngine& DevicePopulations::engine() { return impl_->engine; }

DeviceParticles::DeviceParticles(DevicePopulations& all, const Target& target, ThreadPool& pool)
    : all_(*all.impl_), pool_(pool), slot_(all_.take_slot()) {
  const std::vector<std::uint32_t> ids(target.ids().begin(), target.ids().end());
  try {
    const std::lock_guard lock(all_.device_mutex);
    on_device([&] { all_.engine.set_target(slot_, ids); });
  } catch (...) {
    all_.give_slot(slot_);
    throw;
  }
}
DeviceParticles::~DeviceParticles() {
  if (joined_) all_.leave();
  all_.give_slot(slot_);
}

void DeviceParticles::sample(std::size_t n, std::uint64_t seed) {
  if (joined_) all_.leave();  // nobody shall wait for the draws
  joined_ = false;
  const DevicePopulations::Problem& p = all_.problem;
  h_ = p.kernel.step_size;
  const StartPoints start = draw_start(p.prior, p.cumulative, p.start, n, seed, pool_);
  n_ = n;
  parents_.clear(), scores_.clear();
  all_.join();
  joined_ = true;
  const std::lock_guard lock(all_.device_mutex);
  on_device([&] { all_.engine.set(slot_, start.u, start.groups); });
}

void DeviceParticles::scores(std::span<double> out) {
  if (scores_.empty()) {
    copy_now();
    const std::lock_guard lock(all_.device_mutex);
    const Stopwatch stopwatch;
    scores_ = on_device([&] { return all_.engine.scores({&slot_, 1}); }).front();
    seconds_ += stopwatch.seconds();
  }
  std::copy(scores_.begin(), scores_.end(), out.begin());
  score_evals_ += out.size();
}

void DeviceParticles::resample(std::span<const std::uint32_t> parents) {
  copy_now();
  parents_.assign(parents.begin(), parents.end());
  n_ = parents.size();
  scores_.clear();
}

void DeviceParticles::copy_now() {
  if (parents_.empty()) return;
  const std::lock_guard lock(all_.device_mutex);
  on_device([&] { all_.engine.resample(slot_, parents_); });
  parents_.clear();
}

MoveStats DeviceParticles::move(double level, std::size_t k, std::uint64_t seed) {
  const KernelConfig& kernel = all_.problem.kernel;
  const std::vector<double>& frozen = kernel.frozen_steps;
  DevicePopulations::Impl::Request request{
      .level = {.slot = slot_,
                .level = float_level(level),  // the engine compares in fp32
                .number = k,
                .seed = seed,
                .step_size = frozen.empty() ? h_ : frozen[std::min(k, frozen.size() - 1)]},
      .parents = parents_};
  on_device([&] { all_.run(request); });
  parents_.clear();
  scores_ = std::move(request.scores);
  const cuda::MovesDone& done = request.done;
  h_ = done.step_size;
  score_evals_ += done.scored;
  seconds_ += request.seconds;
  return {.proposed = done.proposed,
          .accepted = done.accepted,
          .moves = kernel.moves,
          .step_size = done.step_size,
          .mean_squared_jump = done.mean_squared_jump,
          .parent_correlation = done.correlation};
}

ConstRows DeviceParticles::rows() {
  copy_now();
  const std::lock_guard lock(all_.device_mutex);
  downloaded_ = on_device([&] { return all_.engine.points(slot_); });
  return {downloaded_.data(), all_.problem.prior.dim()};
}

}  // namespace deeptail
