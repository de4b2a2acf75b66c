// Where an estimate is computed.
#pragma once

#include <string_view>

#include "deeptail/core.h"
#include "deeptail/enum_names.h"

namespace [[gnu::visibility("default")]] deeptail {

enum class Device { kCpu, kCuda };
template <>
struct EnumNames<Device> {
  static constexpr std::string_view kAll[] = {"cpu", "cuda"};
};

// The device cannot be used, or failed: whatever else is computed there would fail, too.
class DeviceError : public InputError {
 public:
  DeviceError(Device device, std::string_view why);
  static DeviceError not_built(Device device);  // by this build
};

// Throws DeviceError when this build or this machine has no such device.
void require_device(Device device);

}  // namespace deeptail
