#include "estimators/ga_amls/many.h"

#include "deeptail/device.h"

#ifdef DEEPTAIL_HAS_CUDA

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "estimators/ga_amls/answer.h"
#include "estimators/ga_amls/device_particles.h"

namespace deeptail {

namespace {

// How far all targets are together, and whether to go on.
class GaManyMeter {
 public:
  GaManyMeter(std::size_t n, const Watch& watch) : told_(n), watch_(watch) {}
  bool tell(std::size_t task, const Progress& progress) {
    const std::lock_guard lock(mutex_);
    Told& told = told_[task];
    const double now = std::max(told.share, std::min(1.0, progress.share));
    share_ += (now - told.share) / static_cast<double>(told_.size());
    levels_ += progress.done - told.levels;
    told = {now, progress.done};
    go_ = go_ &&
          goes_on(watch_, {.share = share_, .done = levels_, .note = told_.size() == 1 ? progress.note : ""});
    return go_;
  }
  bool go() {
    const std::lock_guard lock(mutex_);
    return go_;
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    go_ = false;
  }

 private:
  struct Told {
    double share = 0.0;
    std::uint64_t levels = 0;
  };
  std::mutex mutex_;
  std::vector<Told> told_;  // [tasks]
  double share_ = 0.0;
  std::uint64_t levels_ = 0;
  bool go_ = true;
  const Watch& watch_;
};

std::size_t longest_target(std::span<const GaAmlsTask> tasks) {
  std::size_t most = 1;
  for (const GaAmlsTask& task : tasks) most = std::max(most, task.target.ids().size());
  return most;
}

}  // namespace

void ga_amls_on_device(const GaShared& shared, std::span<const GaAmlsTask> tasks, const Answers& answers,
                       std::size_t at_once, ThreadPool& pool, const Watch& watch) {
  const Head& head = shared.head;
  const GaFit& fit = shared.fit;
  const GaAmlsConfig& config = shared.config;
  const ProductPrior prior(marginal_of(config.prior), head.d_model(), config.nu);
  const DevicePopulations::Problem problem{.head = head,
                                           .whitening = fit.whitening,
                                           .group_means = fit.groups.means,
                                           .prior = prior,
                                           .kernel = config.kernel,
                                           .cumulative = fit.cumulative(),
                                           .start = fit.start(config.start)};
  at_once = std::min({std::max<std::size_t>(1, at_once), tasks.size(), ThreadPool::kMostThreads});
  DevicePopulations populations(
      problem, {.populations = at_once, .particles = config.n_particles, .target = longest_target(tasks)});
  GaManyMeter meter(tasks.size(), watch);
  std::mutex telling;
  std::atomic<bool> failed = false;
  const auto run = [&](std::size_t i, ThreadPool& own) {
    const GaAmlsTask& task = tasks[i];
    GaAmlsConfig mine = config;
    mine.seed = task.seed;
    mine.likely_log_p = task.likely_log_p;
    DeviceParticles particles(populations, task.target, own);
    const GaOutcome outcome =
        run_ga_replicas(particles, head.d_model(), mine, [&](const Progress& p) { return meter.tell(i, p); });
    Estimate estimate = ga_answer({head, shared.activations, task.target, fit, mine}, outcome);
    estimate.cost.seconds = particles.device_seconds();
    const std::lock_guard lock(telling);
    if (!failed) answers.on_estimate(i, std::move(estimate));
  };
  if (tasks.size() == 1) return run(0, pool);
  ThreadPool callers(populations.room());
  callers.for_each_block(tasks.size(), [&](std::size_t i, std::size_t) {
    if (!meter.go()) return;
    try {
      ThreadPool alone(1);
      run(i, alone);
    } catch (...) {
      failed = true;  // nobody will hear of the others
      meter.stop();
      throw;
    }
  });
}

}  // namespace deeptail

#else

namespace deeptail {

void ga_amls_on_device(const GaShared&, std::span<const GaAmlsTask>, const Answers&, std::size_t, ThreadPool&,
                       const Watch&) {
  throw DeviceError::not_built(Device::kCuda);
}

}  // namespace deeptail

#endif
