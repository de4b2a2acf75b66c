// Memory on the device, and errors as exceptions.
#pragma once

#include <cuda_runtime.h>

#include <span>
#include <string>
#include <vector>

#include "compute_cuda/dense.h"

namespace deeptail::cuda {

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // so that the next call starts clean
  throw Failure(std::string(what) + ": " + cudaGetErrorString(error));
}

template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(std::size_t n) : size_(n) {
    if (n > 0) check(cudaMalloc(&data_, n * sizeof(T)), "device memory");
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    if (size_ > 0)
      check(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice),
            "copy to the device");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(DeviceArray&& other) noexcept { swap(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    swap(other);
    return *this;
  }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  void zero() const { check(cudaMemset(data_, 0, size_ * sizeof(T)), "clear device memory"); }
  std::vector<T> to_host() const {
    std::vector<T> values(size_);
    check(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost),
          "copy from the device");
    return values;
  }

 private:
  void swap(DeviceArray& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// Of the device in use.
struct DeviceTraits {
  int n_sm = 0;
  std::size_t most_shared = 0;  // bytes of shared memory that a thread block may have
  bool hopper = false;  // compute capability 9.0: runs the code for sm_90a, all others that for mma.sync
};
inline const DeviceTraits& device_traits() {
  static const DeviceTraits traits = [] {
    int device = 0;
    check(cudaGetDevice(&device), "device");
    const auto attribute = [&](cudaDeviceAttr which) {
      int value = 0;
      check(cudaDeviceGetAttribute(&value, which, device), "device");
      return value;
    };
    return DeviceTraits{
        .n_sm = attribute(cudaDevAttrMultiProcessorCount),
        .most_shared = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)),
        .hopper = attribute(cudaDevAttrComputeCapabilityMajor) == 9 &&
                  attribute(cudaDevAttrComputeCapabilityMinor) == 0};
  }();
  return traits;
}

}  // namespace deeptail::cuda
