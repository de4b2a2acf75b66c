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

}  // namespace

Truth merge_truth(std::span<const std::string> paths) {
  if (paths.empty()) throw InputError("nothing to merge: expected truth files");
  Truth merged = read_truth(paths[0]);
  RangeSet ranges;
  std::uint64_t samples = 0;
  const auto add = [&](const Truth& truth, const std::string& path) {
    for (const TruthRange& range : truth.ranges)
      if (const TruthRange* shared = ranges.add(range))
        throw InputError("{}: counts inputs that an earlier file has counted already: {} overlaps {}", path,
                         describe(*shared), describe(range));
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
