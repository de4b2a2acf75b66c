#include "deeptail/device.h"

#ifdef DEEPTAIL_HAS_CUDA
#include "compute_cuda/truth_engine.h"
#endif

namespace deeptail {

DeviceError::DeviceError(Device device, std::string_view why)
    : InputError(InputError("device {}: {}; use the CPU", name_of(device), why).with_hint(Hint::kDevice)) {}

DeviceError DeviceError::not_built(Device device) {
  return {device, "this build has no CUDA backend (it is built where nvcc is found)"};
}

void require_device([[maybe_unused]] Device device) {
  if (device == Device::kCpu) return;
#ifdef DEEPTAIL_HAS_CUDA
  try {
    cuda::device_name();
  } catch (const cuda::Failure& failure) {
    throw DeviceError(device, failure.what());
  }
#else
  throw DeviceError::not_built(device);
#endif
}

}  // namespace deeptail
