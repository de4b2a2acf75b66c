// Any bytes as a suite: refused with an InputError, or read.
#include "runs/suite.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    deeptail::parse_suite({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const deeptail::InputError&) {
  }
  return 0;
}
