#include "deeptail/device.h"

#include "deeptail/core.h"

#ifdef DEEPTAIL_HAS_CUDA
#include "compute_cuda/truth_engine.h"
#endif

namespace deeptail {

void require_device([[maybe_unused]] Device device) {
  if (device == Device::kCpu) return;
#ifdef DEEPTAIL_HAS_CUDA
  try {
    cuda::device_name();
  } catch (const cuda::Failure& failure) {
    throw InputError("--device cuda: {}; use --device cpu", failure.what());
  }
#else
  throw InputError(
      "--device cuda: this build has no CUDA backend (it is built where nvcc is found); use --device cpu");
#endif
}

}  // namespace deeptail
