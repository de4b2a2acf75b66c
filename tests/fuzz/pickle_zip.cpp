#include "tensors/torch_file.h"
#include "touch_tensors.h"

// The input is read twice: as a whole zip file, and as the bare pickle of one, since few mutations of a zip
// file leave its directory intact.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  deeptail::read_or_refuse([&] { return deeptail::parse_torch_zip(bytes, "input"); });

  static constexpr std::byte kStorage[48]{};
  const deeptail::ZipDirectory storages{{"0", std::span(kStorage).first(24)},
                                        {"1", std::span(kStorage).first(4)},
                                        {"2", std::span(kStorage)},
                                        {"3", {}}};
  deeptail::read_or_refuse([&] { return deeptail::parse_torch_pickle(bytes, storages, 4096, "input"); });
  return 0;
}
