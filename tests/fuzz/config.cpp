#include "deeptail/model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    deeptail::parse_config({reinterpret_cast<const char*>(data), size}, "config.json");
  } catch (const deeptail::InputError&) {
  }
  return 0;
}
