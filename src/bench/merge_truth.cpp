#include "bench/truth.h"

namespace deeptail {

Truth merge_truth(std::span<const std::string> paths) {
  if (paths.empty()) throw InputError("nothing to merge: expected truth files");
  Truth merged = read_truth(paths[0]);
  for (const std::string& path : paths.subspan(1)) {
    const Truth next = read_truth(path);
    check_same_subject(merged, paths[0], next, path);
    merged.ranges.insert(merged.ranges.end(), next.ranges.begin(), next.ranges.end());
    if (const auto shared = sort_ranges(merged.ranges))
      throw InputError("{}: counts inputs that an earlier file has counted already: {} overlaps {}", path,
                       describe(shared->first), describe(shared->second));
    if (merged.samples() > kMaxSamples) throw InputError("{}: more than 2^62 inputs in all", path);
    for (const auto& [token, count] : next.counts) merged.counts[token] += count;
  }
  join_ranges(merged.ranges);
  return merged;
}

}  // namespace deeptail
