// Counts of tokens with resume.
#include <filesystem>

#include "core/write_file.h"
#include "truth/resume.h"
#include "truth/truth.h"

namespace deeptail {

namespace {

namespace fs = std::filesystem;

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

void check_kept(const TruthRequest& request, const Truth& found) {
  const std::string path = hits_path(request.out);
  if (!fs::exists(path))
    throw InputError("{}: was counted without keeping inputs; choose another file", request.out)
        .with_hint(Hint::kOut);
  const TruthHits hits = read_hits(path);
  check_hits_of(hits, path, found);
  if (hits.most != request.hits->most())
    throw InputError("{}: keeps {} inputs of each token, not {}; choose another file", path, hits.most,
                     request.hits->most())
        .with_hint(Hint::kOut);
}

bool is_finished(const TruthRequest& request) {
  if (!fs::exists(request.out)) return false;
  const Truth found = read_truth(request.out);
  if (same_inputs(found, request) && found.samples() == request.samples) {
    if (request.hits != nullptr) check_kept(request, found);
    return true;
  }
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

// The inputs that an earlier run kept. They are saved before the counts, so they may be ahead of them.
void load_kept(const Truth& earlier, const std::string& partial, HitStore* hits) {
  const std::string path = hits_path(partial);
  const bool kept = fs::exists(path);
  if (hits == nullptr && kept && earlier.samples() > 0)
    throw InputError("{}: an earlier run of this count kept inputs; keep them again, or delete this file",
                     path);
  if (hits == nullptr || earlier.samples() == 0) return;
  if (!kept)
    throw InputError("{}: an earlier run of this count kept no inputs; delete it, or choose another file",
                     partial)
        .with_hint(Hint::kOut);
  const TruthHits found = read_hits(path);
  const bool same = found.model_sha256 == earlier.model_sha256 && found.dist_sha256 == earlier.dist_sha256 &&
                    found.ranges.size() == 1 && found.ranges[0].source == earlier.ranges[0].source &&
                    found.ranges[0].seed == earlier.ranges[0].seed &&
                    found.ranges[0].first == earlier.ranges[0].first &&
                    found.ranges[0].count >= earlier.ranges[0].count;
  if (!same || found.most != hits->most())
    throw InputError(
        "{}: inputs of another count, or another number of each token; delete it and {}, or "
        "choose another file",
        path, partial)
        .with_hint(Hint::kOut);
  hits->restore(found, earlier.ranges[0].end());
}

// Counts, and beside them the inputs that were kept, which are there first.
void save(const std::string& path, const Truth& truth, const HitStore* hits) {
  if (hits != nullptr)
    write_file(hits_path(path), to_jsonl({.model = truth.model,
                                          .dist = truth.dist,
                                          .model_sha256 = truth.model_sha256,
                                          .dist_sha256 = truth.dist_sha256,
                                          .most = hits->most(),
                                          .ranges = truth.ranges,
                                          .inputs = hits->inputs()}));
  write_truth(path, truth);
}

// The earlier runs' counts and this run's (counts: [d_vocab]), `done` inputs in all.
Truth total(Truth truth, const TruthRequest& request, std::span<const std::uint64_t> counts,
            std::uint64_t done) {
  truth.ranges = {range_of(request, done)};
  for (std::size_t id = 0; id < counts.size(); ++id)
    if (counts[id] > 0) truth.counts[static_cast<TokenId>(id)] += counts[id];
  return truth;
}

}  // namespace

CountInputs count_on_cpu(const Transformer& model, const Distribution& dist, std::uint64_t seed,
                         ThreadPool& pool, HitStore* hits) {
  const auto runner = std::make_shared<InputRunner>(model, dist, seed, pool);
  return [runner, hits](std::uint64_t first, std::uint64_t count, std::span<std::uint64_t> counts,
                        const Watch& watch) {
    const auto add = [&](std::uint64_t batch, std::span<const TokenId> said) {
      for (const TokenId token : said) ++counts[static_cast<std::size_t>(token)];
      if (hits != nullptr) hits->add(batch, said);
    };
    return for_each_batch(*runner, first, count, add, watch);
  };
}

CountOutcome count_truth(std::size_t d_vocab, const CountInputs& count, const TruthRequest& request,
                         const Watch& watch) {
  Truth earlier;
  std::vector<std::uint64_t> counts(d_vocab);  // of this run
  const ResumableCount job{
      .first = request.first,
      .samples = request.samples,
      .out = request.out,
      .is_finished = [&] { return is_finished(request); },
      .load =
          [&](const std::string& partial) {
            earlier = load_partial(request, partial);
            load_kept(earlier, partial, request.hits);
            return earlier.samples();
          },
      .count = [&](std::uint64_t first, std::uint64_t n,
                   const Watch& told) { return count(first, n, counts, told); },
      .save = [&](const std::string& path,
                  std::uint64_t done) { save(path, total(earlier, request, counts, done), request.hits); },
      .remove =
          [&](const std::string& partial) {
            fs::remove(partial);
            if (request.hits != nullptr) fs::remove(hits_path(partial));
          }};
  return count_resumably(job, watch);
}

}  // namespace deeptail
