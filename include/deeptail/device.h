// Where an estimate is computed.
#pragma once

#include <string_view>

#include "deeptail/enum_names.h"

namespace [[gnu::visibility("default")]] deeptail {

enum class Device { kCpu, kCuda };
template <>
struct EnumNames<Device> {
  static constexpr std::string_view kAll[] = {"cpu", "cuda"};
};

// Throws InputError when this build or this machine has no such device.
void require_device(Device device);

}  // namespace deeptail
