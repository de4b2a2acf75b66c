// Any bytes as counts of tokens: refused with an InputError, or read.
#include "deeptail/build_distribution.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    deeptail::parse_token_counts(text, "fuzz");
  } catch (const deeptail::InputError&) {
  }
  return 0;
}
