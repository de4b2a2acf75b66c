#include "tensors/gguf.h"

#include "touch_tensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  deeptail::read_or_refuse([&] { return deeptail::parse_gguf(bytes, "input").tensors; });
  return 0;
}
