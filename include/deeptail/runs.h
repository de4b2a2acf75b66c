// Runs of a benchmark: estimates of many events by many methods, in a folder (docs/runs.md). Here they are
// read, joined and held against other counts; `deeptail bench run` makes them from a suite.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deeptail/estimators.h"

namespace [[gnu::visibility("default")]] deeptail {

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
// where a file is missing, unless no truth was known before, or counts another model or distribution.
Run rescore_run(Run run, const std::string& folder);
// Runs of different models, distributions, targets or methods as one. Throws InputError where they disagree
// on a file of the same name, or both have an item.
Run join_runs(std::vector<Run> runs);
// The items of the targets that have estimates of every setting that their model has, and of every replica of
// it: what an unfinished run can be compared on.
Run complete_targets(Run run);

}  // namespace deeptail
