// Where an estimate is computed.
#pragma once

#include <optional>
#include <string_view>

namespace [[gnu::visibility("default")]] deeptail {

enum class Device { kCpu, kCuda };
std::string_view name_of(Device device);
std::optional<Device> device_of(std::string_view name);  // nothing for another name

// Throws InputError when this build or this machine has no such device.
void require_device(Device device);

}  // namespace deeptail
