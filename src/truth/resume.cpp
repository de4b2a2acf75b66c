#include "truth/resume.h"

#include <algorithm>

#include "core/file_lock.h"
#include "core/stopwatch.h"
#include "core/write_file.h"
#include "truth/truth.h"

namespace deeptail {

namespace {
constexpr double kSaveSeconds = 2.0, kSaveShare = 20.0;  // at most a twentieth of the time
}  // namespace

CountOutcome count_resumably(const ResumableCount& job, const Watch& watch) {
  if (job.samples == 0 || job.samples > kMaxSamples || job.first > kMaxSamples - job.samples)
    throw InputError("{} inputs from number {}: expected at least one, all below number 2^62", job.samples,
                     job.first);
  if (job.is_finished()) return CountOutcome::kAlreadyFinished;
  check_writable(job.out);
  const WorkLock lock(job.out);
  if (job.is_finished()) return CountOutcome::kAlreadyFinished;  // meanwhile, by another process
  const std::string partial = job.out + ".partial";
  const std::uint64_t before = job.load(partial);
  // Told, not asked: every run does a batch at least.
  if (watch) watch(progress_of(before, job.samples, before));

  Stopwatch unsaved;
  double until_save = kSaveSeconds;
  const auto after_batch = [&](const Progress& of_run) {
    const std::uint64_t done = before + of_run.done;
    if (done == job.samples) return true;
    const bool go = goes_on(watch, progress_of(done, job.samples, before));
    if (!go || unsaved.seconds() >= until_save) {
      const Stopwatch saving;
      job.save(partial, done);
      until_save = std::max(kSaveSeconds, kSaveShare * saving.seconds());
      unsaved.restart();
    }
    return go;
  };
  const std::uint64_t done = before + job.count(job.first + before, job.samples - before, after_batch);
  if (done < job.samples) return CountOutcome::kStopped;
  job.save(job.out, done);
  job.remove(partial);
  return CountOutcome::kFinished;
}

}  // namespace deeptail
