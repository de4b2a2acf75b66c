// Weights reach the warps as a stream of chunks in the order in which they are used, copied to shared memory
// ahead of use.
#pragma once

#include <cstdint>

namespace deeptail::cuda {

// Sixteen bytes from global to shared memory, in the background.
__device__ inline void copy_async(void* to, const void* from) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(address), "l"(from));
}

// A chunk is 16 KiB of tiles (pack.h says in which order), then the vectors that are needed with them, so
// that nothing but the stream is read from global memory: [64] biases of the chunk's columns, then two
// vectors of 128, such as weight and bias of the norm before.
inline constexpr int kTileVectors = 1024;                            // uint4
inline constexpr int kChunkVectors = kTileVectors + (64 + 256) / 4;  // uint4
struct Chunk {
  const uint4* tiles;
  __device__ const float* biases() const { return reinterpret_cast<const float*>(tiles + kTileVectors); }
  __device__ const float* first() const { return biases() + 64; }
  __device__ const float* second() const { return biases() + 192; }
};

// All threads of a block make the same calls. A chunk is used between one next() and the following, which
// gives it back. Warps may be a few chunks apart, so that one multiplies while another is busy with what lies
// between.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ inline void barrier_wait(std::uint64_t* barrier, std::uint32_t parity) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(barrier));
  asm volatile(
      "{\n.reg .pred done;\nagain:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra over;\nbra again;\nover:\n}\n" ::"r"(address),
      "r"(parity)
      : "memory");
}

// Bulk copies, with a barrier per slot for "filled" and one for "free". Thread 0 refills the slot before
// last, so it waits only for warps that are two chunks behind.
template <int kThreads, int kStages>
class WeightStream {
 public:
  struct Shared {
    uint4 ring[kStages * kChunkVectors];
    std::uint64_t filled[kStages], free[kStages];
  };

  __device__ WeightStream(const uint4* chunks, int n_chunks, Shared& shared)
      : chunks_(chunks), n_chunks_(n_chunks), s_(shared) {
    if (threadIdx.x == 0) {
      for (int i = 0; i < kStages; ++i) {
        init(&s_.filled[i], 1);
        init(&s_.free[i], kThreads / 32);
      }
      asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0)
      for (int i = 0; i < kStages; ++i) load();
  }
  // A block must not end while copies are under way.
  __device__ ~WeightStream() {
    if (threadIdx.x == 0)
      for (std::uint32_t i = used_; i < loaded_; ++i) barrier_wait(&s_.filled[i % kStages], i / kStages & 1);
  }

  __device__ Chunk next() {
    __syncwarp();
    if (used_ > 0 && threadIdx.x % 32 == 0) arrive(&s_.free[(used_ - 1) % kStages]);
    if (used_ > 1 && threadIdx.x == 0) refill(used_ - 2);
    const std::uint32_t slot = used_ % kStages;
    barrier_wait(&s_.filled[slot], used_ / kStages & 1);
    ++used_;
    return {s_.ring + slot * kChunkVectors};
  }

 private:
  static_assert(kStages >= 3);
  __device__ static void init(std::uint64_t* barrier, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(
                     static_cast<std::uint32_t>(__cvta_generic_to_shared(barrier))),
                 "r"(count));
  }
  __device__ static void arrive(std::uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(
                     static_cast<std::uint32_t>(__cvta_generic_to_shared(barrier)))
                 : "memory");
  }
  // Chunk number `old` was used: when every warp has given it back, its slot takes the next one to load.
  __device__ void refill(std::uint32_t old) {
    barrier_wait(&s_.free[old % kStages], old / kStages & 1);
    load();
  }
  __device__ void load() {
    constexpr std::uint32_t kBytes = kChunkVectors * sizeof(uint4);
    const std::uint32_t slot = loaded_ % kStages;
    const auto barrier = static_cast<std::uint32_t>(__cvta_generic_to_shared(&s_.filled[slot]));
    const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(s_.ring + slot * kChunkVectors));
    const uint4* from = chunks_ + static_cast<std::size_t>(loaded_ % n_chunks_) * kChunkVectors;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(kBytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::"r"(to),
        "l"(from), "r"(kBytes), "r"(barrier)
        : "memory");
    ++loaded_;
  }

  const uint4* chunks_;
  std::uint32_t n_chunks_;
  Shared& s_;
  std::uint32_t used_ = 0, loaded_ = 0;
};

#else

template <int kThreads, int kStages>
class WeightStream {
 public:
  struct Shared {
    uint4 ring[kStages * kChunkVectors];
    std::uint64_t filled[kStages], free[kStages];  // of the other form, so that both need the same memory
  };

  __device__ WeightStream(const uint4* chunks, int n_chunks, Shared& shared)
      : chunks_(chunks), n_chunks_(n_chunks), s_(shared) {
#pragma unroll
    for (int i = 0; i < kStages - 1; ++i) load();
  }

  __device__ Chunk next() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(kStages - 2));
    __syncthreads();
    load();
    const std::uint32_t slot = used_ % kStages;
    ++used_;
    return {s_.ring + slot * kChunkVectors};
  }

 private:
  __device__ void load() {
    const uint4* from = chunks_ + static_cast<std::size_t>(loaded_ % n_chunks_) * kChunkVectors;
    uint4* to = s_.ring + loaded_ % kStages * kChunkVectors;
#pragma unroll
    for (int i = threadIdx.x; i < kChunkVectors; i += kThreads) copy_async(to + i, from + i);
    asm volatile("cp.async.commit_group;\n");
    ++loaded_;
  }

  const uint4* chunks_;
  std::uint32_t n_chunks_;
  Shared& s_;
  std::uint32_t used_ = 0, loaded_ = 0;
};

#endif

}  // namespace deeptail::cuda
