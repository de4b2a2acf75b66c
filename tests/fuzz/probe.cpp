// Any bytes as a probe: either refused with an InputError, or a finite direction at a place.
#include <cmath>
#include <cstdlib>

#include "events/probe.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const deeptail::ProbeFile probe =
        deeptail::parse_probe({reinterpret_cast<const char*>(data), size}, "fuzz");
    if (probe.direction.empty()) std::abort();
    for (const float value : probe.direction)
      if (!std::isfinite(value)) std::abort();
  } catch (const deeptail::InputError&) {
  }
  return 0;
}
