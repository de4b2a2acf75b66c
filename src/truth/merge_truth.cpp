#include <algorithm>
#include <set>

#include "truth/truth.h"

namespace deeptail {

namespace {

// Ranges without overlaps, by their place.
class RangeSet {
 public:
  // The range that this one overlaps; nothing when it was added.
  const TruthRange* add(const TruthRange& range) {
    const auto next = ranges_.lower_bound(range);
    if (next != ranges_.end() && share_inputs(*next, range)) return &*next;
    if (next != ranges_.begin() && share_inputs(*std::prev(next), range)) return &*std::prev(next);
    ranges_.insert(next, range);
    return nullptr;
  }
  std::vector<TruthRange> sorted() const { return {ranges_.begin(), ranges_.end()}; }

 private:
  std::set<TruthRange, ByPlace> ranges_;
};

Truth subject_of(const TruthHits& hits) {
  return {.model = hits.model,
          .dist = hits.dist,
          .model_sha256 = hits.model_sha256,
          .dist_sha256 = hits.dist_sha256};
}

void add_ranges(RangeSet& ranges, std::span<const TruthRange> added, const std::string& path) {
  for (const TruthRange& range : added)
    if (const TruthRange* shared = ranges.add(range))
      throw InputError("{}: counts inputs that an earlier file has counted already: {} overlaps {}", path,
                       describe(*shared), describe(range));
}

}  // namespace

TruthHits merge_hits(std::span<const std::string> paths) {
  if (paths.empty()) throw InputError("nothing to merge: expected files of inputs");
  std::vector<TruthHits> all;
  TruthHits merged;
  RangeSet ranges;
  for (const std::string& path : paths) {
    TruthHits next = read_hits(path);
    if (all.empty()) merged = {next.model, next.dist, next.model_sha256, next.dist_sha256, next.most};
    check_same_subject(subject_of(merged), paths[0], subject_of(next), path);
    add_ranges(ranges, next.ranges, path);
    merged.most = std::min(merged.most, next.most);
    all.push_back(std::move(next));
  }
  merged.ranges = ranges.sorted();
  join_ranges(merged.ranges);
  for (const TruthHits& hits : all) {
    std::vector<std::uint32_t> place;  // [ranges of this file]: among the merged
    for (const TruthRange& range : hits.ranges)
      for (std::uint32_t i = 0; i < merged.ranges.size(); ++i)
        if (share_inputs(merged.ranges[i], range)) place.push_back(i);
    for (const auto& [token, inputs] : hits.inputs)
      for (const HitInput& input : inputs) merged.inputs[token].push_back({place[input.range], input.number});
  }
  for (auto& [token, inputs] : merged.inputs) {
    std::sort(inputs.begin(), inputs.end());
    if (inputs.size() > merged.most) inputs.resize(merged.most);
  }
  return merged;
}

Truth merge_truth(std::span<const std::string> paths) {
  if (paths.empty()) throw InputError("nothing to merge: expected truth files");
  Truth merged = read_truth(paths[0]);
  RangeSet ranges;
  std::uint64_t samples = 0;
  const auto add = [&](const Truth& truth, const std::string& path) {
    add_ranges(ranges, truth.ranges, path);
    samples += truth.samples();
    if (samples > kMaxSamples) throw InputError("{}: more than 2^62 inputs in all", path);
  };
  add(merged, paths[0]);
  for (const std::string& path : paths.subspan(1)) {
    const Truth next = read_truth(path);
    check_same_subject(merged, paths[0], next, path);
    add(next, path);
    for (const auto& [token, count] : next.counts) merged.counts[token] += count;
  }
  merged.ranges = ranges.sorted();
  join_ranges(merged.ranges);
  return merged;
}

}  // namespace deeptail
