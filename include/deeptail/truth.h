// Ground truth: how often a model says each token, counted over many sampled inputs (docs/truth.md). Counts
// are files that can be merged, imported from elsewhere and compared; counting goes on where it was ended.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/estimators.h"
#include "deeptail/sampling.h"
#include "deeptail/watch.h"

namespace [[gnu::visibility("default")]] deeptail {

// Counted by fp16 alone; the inputs are those of "deeptail".
inline constexpr const char* kFp16Source = "deeptail-fp16";

// Samples [first, first + count) of a seed, drawn by a program: "deeptail", "pytorch", ...
struct TruthRange {
  std::string source = {};
  std::uint64_t seed = 0, first = 0, count = 0;
  std::uint64_t end() const { return first + count; }
  friend auto operator<=>(const TruthRange&, const TruthRange&) = default;
};

struct Truth {
  std::string model = {}, dist = {};
  std::string model_sha256 = {}, dist_sha256 = {};  // "" when not known (imported counts)
  std::vector<TruthRange> ranges = {};              // sorted, without overlaps
  std::map<TokenId, std::uint64_t> counts = {};     // only tokens that were seen

  std::uint64_t samples() const;
  std::uint64_t count(TokenId token) const;
  double q(TokenId token) const { return static_cast<double>(count(token)) / static_cast<double>(samples()); }
};

// The file form deeptail-truth-1, as it is or compressed (gzip). Reading throws InputError for anything that does not add up.
Truth parse_truth(std::string_view json, std::string_view where);
Truth read_truth(const std::string& path);
std::string to_json(const Truth& truth);
// Compressed where the path ends in .gz.
void write_truth(const std::string& path, const Truth& truth);

// "deeptail seed 1, inputs 0 to 1048575".
std::string describe(const TruthRange& range);

// Counts of all files together. Throws InputError when two share inputs, or are of different models or
// distributions.
Truth merge_truth(std::span<const std::string> paths);

// Counts kept as a single tensor of whole numbers, one per token id (ARC's frequencies32-*.pt).
Truth import_truth(const std::string& path, const std::string& model, const std::string& dist);

// --- inputs that were counted ---

// The number of a sample, and which of a file's ranges it is in.
struct HitInput {
  std::uint32_t range = 0;
  std::uint64_t number = 0;
  friend auto operator<=>(const HitInput&, const HitInput&) = default;
};

// The first inputs after which each token was said, at most so many of each: independent draws from the law
// given the event. Their numbers are enough to make them again.
struct TruthHits {
  std::string model = {}, dist = {};
  std::string model_sha256 = {}, dist_sha256 = {};
  std::uint64_t most = 0;                                // of each token
  std::vector<TruthRange> ranges = {};                   // that were counted: sorted, without overlaps
  std::map<TokenId, std::vector<HitInput>> inputs = {};  // ascending; fewer than `most`: all there are
};

// Where the inputs of a file of counts lie: beside it.
std::string hits_path(const std::string& counts_path);
// The file form deeptail-hits-1: a line of JSON that says what was counted, and one for each token and range.
// Reading throws InputError for anything that does not fit together.
TruthHits parse_hits(std::string_view lines, std::string_view where);
TruthHits read_hits(const std::string& path);
std::string to_jsonl(const TruthHits& hits);
// Throws InputError unless these are inputs of that count: the same subject and ranges, of each token as many
// as there must be.
void check_hits_of(const TruthHits& hits, std::string_view where, const Truth& truth);
// Of all files together; of each token as many as the smallest of them keeps.
TruthHits merge_hits(std::span<const std::string> paths);
// The inputs themselves: [n, length]. Throws InputError where the distribution is another one.
std::vector<TokenId> hit_tokens(const TruthHits& hits, const Distribution& dist, TokenId token);

// Keeps the inputs of a count that is under way.
class HitStore {
 public:
  // most: of each token. Throws InputError where they might not fit into memory.
  HitStore(std::size_t d_vocab, std::uint64_t most);

  std::uint64_t most() const { return most_; }
  // said[i]: after sample first + i. Batches come in the order of their samples.
  void add(std::uint64_t first, std::span<const TokenId> said);
  // Those of earlier runs, of one range, that are below `end`.
  void restore(const TruthHits& earlier, std::uint64_t end);
  // As inputs of one range.
  std::map<TokenId, std::vector<HitInput>> inputs() const;

 private:
  std::uint64_t most_;
  std::vector<std::vector<std::uint64_t>> numbers_;  // [d_vocab]
};

// --- counting ---

struct TruthRequest {
  Provenance provenance = {};
  std::string source = "deeptail";
  std::uint64_t seed = 1, first = 0, samples = 0;
  std::string out = {};      // file; progress is kept in out + ".partial"
  HitStore* hits = nullptr;  // what the counting fills; saved beside the counts, and continued like them
};
enum class CountOutcome { kFinished, kAlreadyFinished, kStopped };

// Adds how often each token is said on samples [first, first + count) to counts: [d_vocab], or on fewer when
// the watch, which is told inputs, says so; returns how many. Where it runs is its own business.
using CountInputs = std::function<std::uint64_t(std::uint64_t first, std::uint64_t count,
                                                std::span<std::uint64_t> counts, const Watch& watch)>;
// All must outlive the result. hits: keeps inputs of what it counts.
CountInputs count_on_cpu(const Transformer& model, const Distribution& dist, std::uint64_t seed,
                         ThreadPool& pool, HitStore* hits = nullptr);
// On a CUDA device (docs/cuda.md). Inputs whose two best logits differ by at most near_tie in fp16 are
// decided in fp32; 0: by fp16 alone; none: as fp16's measured rounding error wants it. Throws InputError when
// this build or this machine has no such device, or the model is not of a size it takes.
CountInputs count_on_cuda(const Transformer& model, const Distribution& dist, std::uint64_t seed,
                          std::optional<double> near_tie = {}, HitStore* hits = nullptr);
std::string cuda_device_name();  // throws likewise

// Counts samples [first, first + samples). Progress is saved at least every few seconds and whenever it
// stops, so the same request continues where the last run ended, however it ended. A finished file of the
// same request is left alone; a file of another request is refused. The watch is told inputs of the whole
// request: before the first batch those of earlier runs, whatever it says to that, so that every run does
// something.
CountOutcome count_truth(std::size_t d_vocab, const CountInputs& count, const TruthRequest& request,
                         const Watch& watch = {});

// --- events on sampled continuations, many at once ---

// How often each event happened on the same texts.
struct EventCounts {
  struct Item {
    std::string event = {};  // as a JSON object: {"contains": " wizard", "within": 40}
    std::uint64_t count = 0;
    friend bool operator==(const Item&, const Item&) = default;
  };
  std::string model = {}, law = {};
  std::string model_sha256 = {}, law_sha256 = {};  // "" when not known
  SamplingConfig sampling = {};                    // max_tokens: no part of the file
  std::vector<TruthRange> ranges = {};             // of texts: sorted, without overlaps
  std::vector<Item> events = {};                   // no event twice

  std::uint64_t samples() const;
  double q(std::size_t event) const;
};

// The file form deeptail-event-counts-1. Reading throws InputError for anything that does not add up.
EventCounts parse_event_counts(std::string_view json, std::string_view where);
EventCounts read_event_counts(const std::string& path);
std::string to_json(const EventCounts& counts);
bool is_event_counts(const std::string& path);  // rather than counts of tokens
// Counts of all files together. Throws InputError when two share texts, or are of different models, laws, ways to
// sample or events.
EventCounts merge_event_counts(std::span<const std::string> paths);

// The events of a file: a JSON list of objects, or one a line, each as in EventCounts. Throws InputError.
std::vector<std::string> parse_events(std::string_view text, std::string_view where);

struct EventCountRequest {
  EventCounts subject = {};  // all but ranges and counts
  std::string source = "deeptail";
  std::uint64_t seed = 1, first = 0, samples = 0;
  std::string out = {};  // file; progress is kept in out + ".partial"
};
// Counts events on texts [first, first + samples): their prompts are the law's samples of these numbers, their
// continuations are drawn as the subject says, up to the longest that an event asks for. Saved and continued as
// count_truth does. The watch is told texts.
CountOutcome count_events(const LoadedModel& model, const InputLaw& law, const EventCountRequest& request,
                          ThreadPool& pool, const Watch& watch = {});

// --- comparing ---

struct TruthComparison {
  std::size_t n_tokens = 0;  // with at least 50 expected counts in the smaller sample
  double max_z = 0.0;        // largest |difference| in standard deviations of both samples' noise
  TokenId max_z_token = -1;
  double chi_square = 0.0;  // over these tokens and all others together
  std::size_t degrees = 0;
  double p_value = 1.0;
  std::vector<TokenId> unseen;  // said in b, never in a; most frequent first
};
// Do two independent counts of the same model and distribution agree? Where b holds all inputs of a, a is
// compared with the rest of b; counts that share inputs in another way are refused.
TruthComparison compare_truth(const Truth& a, const Truth& b, double min_expected = 50.0);

}  // namespace deeptail
