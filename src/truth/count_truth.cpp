// Counting with resume: OUT.partial holds what is done, OUT appears when all is.
#include <filesystem>

#include "core/file_lock.h"
#include "core/stopwatch.h"
#include "core/write_file.h"
#include "truth/truth.h"

namespace deeptail {

namespace {

namespace fs = std::filesystem;

constexpr double kSaveSeconds = 2.0;

TruthRange range_of(const TruthRequest& request, std::uint64_t count) {
  return {.source = request.source, .seed = request.seed, .first = request.first, .count = count};
}

bool same_inputs(const Truth& found, const TruthRequest& request) {
  return found.model_sha256 == request.provenance.model_sha256 &&
         found.dist_sha256 == request.provenance.dist_sha256 && found.ranges.size() == 1 &&
         found.ranges[0] == range_of(request, found.ranges[0].count);
}

std::string describe(const Truth& truth, const TruthRequest& request) {
  const bool other_model =
      truth.model == request.provenance.model && truth.model_sha256 != request.provenance.model_sha256;
  return fmt::format(
      "{} on {}, {}{}{}", truth.model, truth.dist, describe(truth.ranges[0]),
      truth.ranges.size() > 1 ? fmt::format(" and {} more ranges", truth.ranges.size() - 1) : "",
      other_model ? "; the model's weights or its config.json differ" : "");
}

bool is_finished(const TruthRequest& request) {
  if (!fs::exists(request.out)) return false;
  const Truth found = read_truth(request.out);
  if (same_inputs(found, request) && found.samples() == request.samples) return true;
  throw InputError(
      "{}: holds another count ({}); choose another file, or count only what is missing and merge the two",
      request.out, describe(found, request))
      .with_hint(Hint::kRest);
}

// What an earlier run of this request left, or nothing done.
Truth load_partial(const TruthRequest& request, const std::string& partial) {
  if (!fs::exists(partial)) {
    const Provenance& p = request.provenance;
    return {.model = p.model, .dist = p.dist, .model_sha256 = p.model_sha256, .dist_sha256 = p.dist_sha256};
  }
  Truth found = read_truth(partial);
  if (!same_inputs(found, request) || found.samples() > request.samples)
    throw InputError(
        "{}: is the unfinished work of another count ({}); finish that one, delete it, or choose another "
        "file",
        partial, describe(found, request))
        .with_hint(Hint::kOut);
  return found;
}

// The earlier runs' counts and this run's (counts: [d_vocab]), `done` inputs in all.
Truth total(Truth truth, const TruthRequest& request, std::span<const std::uint64_t> counts,
            std::uint64_t done) {
  truth.ranges = {range_of(request, done)};
  for (std::size_t id = 0; id < counts.size(); ++id)
    if (counts[id] > 0) truth.counts[static_cast<TokenId>(id)] += counts[id];
  return truth;
}

void validate(const TruthRequest& request) {
  if (request.samples == 0 || request.samples > kMaxSamples || request.first > kMaxSamples - request.samples)
    throw InputError("{} inputs from number {}: expected at least one, all below number 2^62",
                     request.samples, request.first);
}

}  // namespace

CountInputs count_on_cpu(const Transformer& model, const Distribution& dist, std::uint64_t seed,
                         ThreadPool& pool) {
  const auto runner = std::make_shared<InputRunner>(model, dist, seed, pool);
  return [runner](std::uint64_t first, std::uint64_t count, std::span<std::uint64_t> counts,
                  const Watch& watch) {
    const auto add = [&](std::uint64_t, std::span<const TokenId> said) {
      for (const TokenId token : said) ++counts[static_cast<std::size_t>(token)];
    };
    return for_each_batch(*runner, first, count, add, watch);
  };
}

CountOutcome count_truth(std::size_t d_vocab, const CountInputs& count, const TruthRequest& request,
                         const Watch& watch) {
  validate(request);
  if (is_finished(request)) return CountOutcome::kAlreadyFinished;
  check_writable(request.out);
  const WorkLock lock(request.out);
  if (is_finished(request)) return CountOutcome::kAlreadyFinished;  // meanwhile, by another process
  const std::string partial = request.out + ".partial";
  const Truth earlier = load_partial(request, partial);
  const std::uint64_t before = earlier.samples();
  // Told, not asked: every run does a batch at least.
  if (watch) watch(progress_of(before, request.samples, before));

  Stopwatch unsaved;
  std::vector<std::uint64_t> counts(d_vocab);  // of this run
  const auto after_batch = [&](const Progress& of_run) {
    const std::uint64_t done = before + of_run.done;
    if (done == request.samples) return true;
    const bool go = goes_on(watch, progress_of(done, request.samples, before));
    if (!go || unsaved.seconds() >= kSaveSeconds) {
      write_file(partial, to_json(total(earlier, request, counts, done)));
      unsaved.restart();
    }
    return go;
  };
  const std::uint64_t done =
      before + count(request.first + before, request.samples - before, counts, after_batch);
  if (done < request.samples) return CountOutcome::kStopped;
  write_file(request.out, to_json(total(earlier, request, counts, done)));
  fs::remove(partial);
  return CountOutcome::kFinished;
}

}  // namespace deeptail
