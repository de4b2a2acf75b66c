// Any bytes as a table of temperatures: refused with an InputError, or read.
#include "deeptail/temperatures.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    deeptail::parse_temperatures({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const deeptail::InputError&) {
  }
  return 0;
}
