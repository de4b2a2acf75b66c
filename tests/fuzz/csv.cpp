// Any bytes as a table of pairs: either refused with an InputError, or numbers within their ranges.
#include <cstdlib>

#include "deeptail/loss.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const deeptail::Pairs pairs = deeptail::parse_pairs({reinterpret_cast<const char*>(data), size}, "fuzz");
    for (std::size_t i = 0; i < pairs.truth.size(); ++i) {
      const double q = pairs.truth[i], p = pairs.estimate[i];
      if (!(q > 0.0 && q < 1.0 && p >= 0.0 && p <= 1.0) || pairs.line[i] < 2) std::abort();
      for (const double alpha : {1.0, 1.5, 2.0, 4.0})
        if (!(deeptail::spb_weighted({.alpha = alpha, .gamma = 0.0, .epsilon = 1e-12}, q, p) >= 0.0))
          std::abort();
    }
  } catch (const deeptail::InputError&) {
  }
  return 0;
}
