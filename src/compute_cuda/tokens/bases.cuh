// The laws that particles move under, on the device: added and removed while kernels use others.
#pragma once

#include <bit>
#include <cstring>
#include <map>
#include <mutex>

#include "compute_cuda/device.cuh"
#include "compute_cuda/tokens/propose.cuh"

namespace deeptail::cuda {

class Bases {
 public:
  explicit Bases(const DenseInputs& inputs)
      : length_(static_cast<int>(inputs.length())), first_row_(inputs.first_row) {
    check(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "stream");
    add(own_base(inputs));
  }
  ~Bases() { cudaStreamDestroy(copies_); }

  // Nobody waits for its copying.
  std::size_t add(const DenseBase& base) {
    Memory memory = memory_for(words_of(base));
    const MoveTables tables = lay_out(base, memory);
    const std::lock_guard lock(mutex_);
    bases_.emplace(next_, Held{std::move(memory), tables});
    return next_++;
  }
  void remove(std::size_t number) {
    const std::lock_guard lock(mutex_);
    const auto at = bases_.find(number);
    if (at == bases_.end()) return;
    const std::size_t size = at->second.memory.size();
    spare_.emplace(size, std::move(at->second.memory));
    bases_.erase(at);
  }
  MoveTables at(std::size_t number) const {
    const std::lock_guard lock(mutex_);
    const auto found = bases_.find(number);
    if (found == bases_.end()) throw Failure("moves under a law that is not there");
    return found->second.tables;
  }

 private:
  using Memory = DeviceArray<std::uint64_t>;
  struct Held {
    Memory memory;
    MoveTables tables;
  };

  static DenseBase own_base(const DenseInputs& inputs) {
    DenseBase base{inputs.tables, inputs.last_unit, inputs.guide, {}, {}};
    for (std::uint32_t p = 0; p < inputs.length(); ++p)
      if (inputs.first_row[p + 1] - inputs.first_row[p] > 1) base.free.push_back(p);
    return base;
  }

  // Calls each(values) for all arrays, in the order in which they lie in memory, each on whole words.
  template <class Each>
  static void for_arrays(const DenseBase& base, const Each& each) {
    each(base.last_unit), each(base.tables), each(base.guide), each(base.free), each(base.plants);
  }
  template <class T>
  static std::size_t words_of(const std::vector<T>& values) {
    return (values.size() * sizeof(T) + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
  }
  static std::size_t words_of(const DenseBase& base) {
    std::size_t words = 0;
    for_arrays(base, [&](const auto& values) { words += words_of(values); });
    return words;
  }

  // Memory is used again and not given back, since that waits for all kernels.
  Memory memory_for(std::size_t words) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = spare_.lower_bound(words);
      if (found != spare_.end()) return std::move(spare_.extract(found).mapped());
    }
    return Memory(std::bit_ceil(words));
  }

  MoveTables lay_out(const DenseBase& base, const Memory& memory) const {
    std::vector<std::uint64_t> words(words_of(base));
    std::vector<const std::uint64_t*> starts;
    std::size_t used = 0;
    for_arrays(base, [&](const auto& values) {
      starts.push_back(memory.data() + used);
      std::memcpy(words.data() + used, values.data(), values.size() * sizeof(values[0]));
      used += words_of(values);
    });
    check(cudaMemcpyAsync(memory.data(), words.data(), words.size() * sizeof(std::uint64_t),
                          cudaMemcpyHostToDevice, copies_),
          "copy to the device");
    check(cudaStreamSynchronize(copies_), "copy to the device");
    const auto indices = [&](std::size_t i) { return reinterpret_cast<const std::uint32_t*>(starts[i]); };
    const auto* plants = reinterpret_cast<const DensePlant*>(starts[4]);
    return {.sample = {.tables = reinterpret_cast<const DenseInputs::Table*>(starts[1]),
                       .first_row = first_row_.data(),
                       .guide = indices(2),
                       .last_unit = starts[0],
                       .length = length_},
            .free = indices(3),
            .n_free = static_cast<std::uint32_t>(base.free.size()),
            .plants = base.plants.empty() ? nullptr : plants};
  }

  int length_;
  DeviceArray<std::uint32_t> first_row_;
  cudaStream_t copies_ = nullptr;  // beside the kernels
  mutable std::mutex mutex_;
  std::map<std::size_t, Held> bases_;
  std::multimap<std::size_t, Memory> spare_;  // by size
  std::size_t next_ = 0;
};

}  // namespace deeptail::cuda
