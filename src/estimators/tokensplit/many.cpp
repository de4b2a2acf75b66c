#include "estimators/tokensplit/many.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "core/memory.h"
#include "estimators/tokensplit/tokensplit.h"

namespace deeptail {

namespace {

// The work of all targets together, and whether to go on.
class ManyMeter {
 public:
  ManyMeter(std::size_t n, std::uint64_t total, const Watch& watch, ParticleService& service)
      : told_(n, 0), total_(total), watch_(watch), service_(service) {}
  bool tell(std::size_t task, std::uint64_t done) {
    const std::lock_guard lock(mutex_);
    sum_ += done - std::min(done, told_[task]);
    told_[task] = std::max(done, told_[task]);
    if (go_ && !goes_on(watch_, progress_of(sum_, total_))) end();
    return go_;
  }
  bool go() {
    const std::lock_guard lock(mutex_);
    return go_;
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    end();
  }

 private:
  void end() {
    go_ = false;
    service_.hurry();
  }

  std::mutex mutex_;
  std::vector<std::uint64_t> told_;
  std::uint64_t sum_ = 0, total_;
  bool go_ = true;
  const Watch& watch_;
  ParticleService& service_;
};

void check_single(const Target& target) {
  if (target.ids().size() != 1)
    throw InputError("a target of {} tokens: tokensplit on a device takes one token; use the CPU",
                     target.ids().size())
        .with_hint(Hint::kDevice);
}

// Targets that half of what a run may take has room for.
std::size_t fitting(const Transformer& model, const InputLaw& law, std::span<const TokensplitTask> tasks) {
  double most = 1.0;
  for (const TokensplitTask& task : tasks)
    most = std::max(most, target_bytes({model, law, NextToken(task.target)}, task.config));
  return static_cast<std::size_t>(std::min(1e6, 0.5 * memory_limit() / most));
}

// Of all tasks together, in forward-pass equivalents.
std::uint64_t budget_of(const Transformer& model, const InputLaw& law,
                        std::span<const TokensplitTask> tasks) {
  double sum = 0.0;
  for (const auto& [target, config] : tasks)
    sum += config.budget > 0.0 ? config.budget : tokensplit_budget(model.config(), law, ServedPlace::kDevice);
  return static_cast<std::uint64_t>(sum);
}

}  // namespace

void run_many(const Transformer& model, const Distribution& dist, std::span<const TokensplitTask> tasks,
              const Answers& answers, std::size_t at_once, ParticleDevice& device,
              const ServiceOptions& options, const Watch& watch) {
  if (tasks.empty()) return;
  const TokenTables law(dist);
  at_once = std::min({at_once, tasks.size(), ThreadPool::kMostThreads, fitting(model, law, tasks)});
  at_once = std::max<std::size_t>(1, at_once);
  ParticleService service(device, options);
  ManyMeter meter(tasks.size(), budget_of(model, law, tasks), watch, service);
  std::mutex telling;
  std::atomic<bool> failed = false;
  ThreadPool callers(at_once);
  const auto run = [&](std::size_t i) {
    const TokensplitTask& task = tasks[i];
    std::optional<Estimate> estimate;
    std::string why;
    try {
      check_single(task.target);
      ThreadPool alone(1);
      const NextToken event(task.target);
      estimate = estimate_target({{.model = model, .law = law, .event = event}, service}, task.config,
                                 at_once, alone, [&](const Progress& p) { return meter.tell(i, p.done); });
    } catch (const InputError& e) {
      if (!answers.on_refusal) throw;
      why = e.what();
    }
    const std::lock_guard lock(telling);
    if (failed) return;  // it may have been cut short
    if (estimate)
      answers.on_estimate(i, *std::move(estimate));
    else
      answers.on_refusal(i, why);
  };
  callers.for_each_block(tasks.size(), [&](std::size_t i, std::size_t) {
    if (!meter.go()) return;
    try {
      run(i);
    } catch (...) {
      failed = true;  // nobody will hear of the others
      meter.stop();
      throw;
    }
  });
}

}  // namespace deeptail
