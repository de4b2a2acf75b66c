#include "tensors/gguf.h"

#include "inputs/gguf_tokenizer.h"
#include "model/families/family.h"
#include "model/families/gguf_config.h"
#include "touch_tensors.h"

namespace deeptail {
namespace {

template <class Read>
void try_to(Read read) {
  try {
    read();
  } catch (const InputError&) {
  }
}

void read_all(std::span<const std::byte> bytes) {
  const std::string where = "input";
  const Gguf gguf = parse_gguf(bytes, where);
  for (const auto& [name, tensor] : gguf.tensors) touch(tensor);
  try_to([&] {
    TensorTaker taker(gguf.tensors, where);
    take_weights(gguf_config(gguf), taker);
  });
  try_to([&] {
    if (const auto named = gguf_tokenizer(gguf.metadata)) named->tokenizer.encode("ab <s>\xff 12");
  });
}

}  // namespace
}  // namespace deeptail

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  deeptail::try_to([&] { deeptail::read_all(std::as_bytes(std::span(data, size))); });
  return 0;
}
