// Any bytes as a truth file: either refused with an InputError, or counts that add up and survive writing.
#include <cstdlib>

#include "deeptail/truth.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const deeptail::Truth truth = deeptail::parse_truth({reinterpret_cast<const char*>(data), size}, "fuzz");
    std::uint64_t sum = 0;
    for (const auto& [token, count] : truth.counts) sum += count;
    if (sum != truth.samples() || sum == 0) std::abort();
    const deeptail::Truth again = deeptail::parse_truth(deeptail::to_json(truth), "fuzz");
    if (again.counts != truth.counts || again.ranges != truth.ranges) std::abort();
  } catch (const deeptail::InputError&) {
  }
  return 0;
}
