// Any bytes as a file of inputs that were kept: either refused with an InputError, or inputs within their
// ranges that survive writing.
#include <cstdlib>

#include "deeptail/truth.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const deeptail::TruthHits hits =
        deeptail::parse_hits({reinterpret_cast<const char*>(data), size}, "fuzz");
    for (const auto& [token, inputs] : hits.inputs) {
      if (inputs.empty() || inputs.size() > hits.most) std::abort();
      for (const deeptail::HitInput& input : inputs) {
        const deeptail::TruthRange& range = hits.ranges.at(input.range);
        if (input.number < range.first || input.number >= range.end()) std::abort();
      }
    }
    const deeptail::TruthHits again = deeptail::parse_hits(deeptail::to_jsonl(hits), "fuzz");
    if (again.inputs != hits.inputs || again.ranges != hits.ranges || again.most != hits.most) std::abort();
  } catch (const deeptail::InputError&) {
  }
  return 0;
}
