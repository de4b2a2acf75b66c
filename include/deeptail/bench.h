// The benchmark. Ground truth: how often a model says each token, counted over many sampled inputs
// (docs/truth.md). Runs: estimates of many events by many methods, in a folder (docs/runs.md).
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

// The file form deeptail-truth-1. Reading throws InputError for anything that does not add up.
Truth parse_truth(std::string_view json, std::string_view where);
Truth read_truth(const std::string& path);
std::string to_json(const Truth& truth);

// "deeptail seed 1, inputs 0 to 1048575".
std::string describe(const TruthRange& range);

// Counts of all files together. Throws InputError when two share inputs, or are of different models or
// distributions.
Truth merge_truth(std::span<const std::string> paths);

// Counts kept as a single tensor of whole numbers, one per token id (ARC's frequencies32-*.pt).
Truth import_truth(const std::string& path, const std::string& model, const std::string& dist);

// --- counting ---

struct TruthRequest {
  Provenance provenance = {};
  std::string source = "deeptail";
  std::uint64_t seed = 1, first = 0, samples = 0;
  std::string out = {};  // file; progress is kept in out + ".partial"
};
enum class CountOutcome { kFinished, kAlreadyFinished, kStopped };

// Adds how often each token is said on samples [first, first + count) to counts: [d_vocab], or on fewer when
// keep_going says so; returns how many. Where it runs is its own business.
using CountInputs = std::function<std::uint64_t(
    std::uint64_t first, std::uint64_t count, std::span<std::uint64_t> counts, const KeepGoing& keep_going)>;
// All must outlive the result.
CountInputs count_on_cpu(const Transformer& model, const Distribution& dist, std::uint64_t seed,
                         ThreadPool& pool);
// On a CUDA device (docs/cuda.md). Inputs whose two best logits differ by at most near_tie in fp16 are
// decided in fp32; 0: by fp16 alone; none: as fp16's measured rounding error wants it. Throws InputError when
// this build or this machine has no such device, or the model is not of a size it takes.
CountInputs count_on_cuda(const Transformer& model, const Distribution& dist, std::uint64_t seed,
                          std::optional<double> near_tie = {});
std::string cuda_device_name();  // throws likewise

struct CountHooks {
  std::function<void(std::uint64_t done)> started = [](std::uint64_t) {};  // inputs done by earlier runs
  KeepGoing keep_going = {};  // of the whole request; false: save and stop
};

// Counts samples [first, first + samples). Progress is saved at least every few seconds and whenever it
// stops, so the same request continues where the last run ended, however it ended. A finished file of the
// same request is left alone; a file of another request is refused.
CountOutcome count_truth(std::size_t d_vocab, const CountInputs& count, const TruthRequest& request,
                         const CountHooks& hooks);

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

// --- run folders ---

inline constexpr std::uint64_t kRunSchema = 1;

// run.json: what the estimates of a folder were made from.
struct RunHeader {
  struct Model {
    std::string name = {}, sha256 = {};
    std::uint64_t n_layers = 0, d_model = 0, d_vocab = 0;
    friend bool operator==(const Model&, const Model&) = default;
  };
  struct File {
    std::string name = {}, sha256 = {};
    friend bool operator==(const File&, const File&) = default;
  };
  std::uint64_t schema = kRunSchema;
  std::string version = {};  // of deeptail
  std::string suite_name = {}, suite_sha256 = {}, suite_text = {};
  std::vector<std::string> profiles = {};  // of the loss, as the suite names them
  std::vector<Model> models = {};
  std::vector<File> distributions = {};
  std::vector<File> truths = {};        // "dt-1l-hex": the counts that the targets were chosen from
  std::vector<File> temperatures = {};  // the table that itgis and mhis took theirs from, where there is one
  std::uint64_t items = 0;              // in the whole grid
  std::string device = "cpu", created = {};
};

// One estimate: a method, with its settings, on one event. It has the fields that losses and tables need; the
// line in the folder has all of the Estimate.
struct RunItem {
  std::string id = {};  // 16 hex digits: the hash of model, dist, target, variant and replica
  std::string model = {}, dist = {}, target_text = {};
  std::string method = {}, variant = {};  // variant: the method's name, or that and its settings
  std::vector<TokenId> target = {};
  std::uint64_t replica = 0;
  std::uint64_t truth_count = 0, truth_samples = 0;  // no samples: the truth is not known
  double log_p = 0.0, log_low = 0.0, log_high = 0.0;
  std::string status = {}, guarantee = {};
  Cost cost = {};        // as if it had made its activations alone
  double seconds = 0.0;  // that it took in the run, where activations are shared
  std::uint64_t seed = 0, calibration_seed = 0;
  std::vector<std::string> warnings = {};

  bool truth_known() const { return truth_samples > 0; }
  double q() const { return static_cast<double>(truth_count) / static_cast<double>(truth_samples); }
};

struct Run {
  RunHeader header = {};
  std::vector<RunItem> items = {};  // sorted by model, dist, target, variant, replica; each once
  std::size_t torn = 0;             // estimates that a crash cut off before they were committed
};
// Everything that is committed. A run may be unfinished (items.size() < header.items), and others may be
// writing to it. Throws InputError, with file and line, for a damaged file and for two estimates of one item
// that differ.
Run read_run(const std::string& folder);
void sort_items(std::vector<RunItem>& items);
// The run with the counts in folder/MODEL-DIST.json as the truths of its items: counts may grow after a run,
// and targets that were chosen by a small count have truths that are too high on average. Throws InputError
// where a file is missing or counts another model or distribution.
Run rescore_run(Run run, const std::string& folder);
// Runs of different models, distributions, targets or methods as one. Throws InputError where they disagree
// on a file of the same name, or both have an item.
Run join_runs(std::vector<Run> runs);

}  // namespace deeptail
