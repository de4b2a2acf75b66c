// Products of fp16 rows and weights with fp32 sums, for wide models: 128 rows by 256 columns at a time, results given to an
// epilogue in registers.
//
// Two thread blocks of a cluster take neighbouring row tiles through the same columns. Each fetches half of every piece of weights, for
// both: what the L2 cache has to give is halved. Rows of up to 512 numbers stay in shared memory, longer ones come along with the
// weights. One warp of a block fetches, two groups of four warps multiply 64 rows by 256 columns each; they may be some pieces apart, so that
// one multiplies while the other is busy with its results. Hopper only.
//
// An epilogue has
//   begin(row, n)            the warp's first row, and how many rows there are in all
//   take(c, row, tile)       the warp's 16 rows of 256 columns (fragments.cuh)
//   end(row, part)           after the last columns of an item
#pragma once

#include "compute_cuda/exact/twofold_rows.cuh"
#include "compute_cuda/tiles/products.cuh"
#include "compute_cuda/tiles/wide_wgmma.cuh"

namespace deeptail::cuda {

inline constexpr int kWideColumns = 256, kWideWarps = 8, kWideThreads = 32 * (kWideWarps + 1);
inline constexpr int kWideBiasBytes = kWideColumns * sizeof(float);
inline constexpr int kWideRowPiece = kTileRows * kTileDepth * 2,
                     kWideColumnPiece = kWideColumns * kTileDepth * 2;
inline constexpr int kWideBlocks = 2, kClusterRows = kWideBlocks * kTileRows;  // of a cluster

struct WideProductArgs {
  const __half* a;    // [n, depth], in the order of twofold_rows.cuh; n rounded up to 256
  const __half* w;    // [n_tiles][depth / 8][256][8]
  const float* bias;  // [n_tiles * 256]: what sums begin with
  std::uint32_t n;
  const std::uint32_t* n_device;  // null, or where the number of rows is, at most n
  int depth, n_tiles, parts;      // parts: of the columns; an item is two row tiles and a part
};

template <bool kResident>
struct WideShared {
  static constexpr int kStages = kResident ? 3 : 4, kRowPieces = kResident ? 8 : kStages;
  unsigned char rows[kRowPieces][kWideRowPiece];
  unsigned char columns[kStages][kWideColumnPiece];
  float bias[2][kWideColumns];  // of the tiles in turn
  std::uint64_t filled[kStages], free[kStages];
};

struct WideItems {
  std::uint32_t n, count;
  __device__ explicit WideItems(const WideProductArgs& a) {
    n = a.n_device != nullptr ? min(*a.n_device, a.n) : a.n;
    count = (n + kClusterRows - 1) / kClusterRows * a.parts;
  }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ inline std::uint32_t cluster_rank() {
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
  return rank;
}
__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n" ::: "memory");
}

template <bool kResident>
class WideWorker {
  using Shared = WideShared<kResident>;
  static constexpr std::uint32_t kStages = Shared::kStages;

 public:
  __device__ WideWorker(const WideProductArgs& args, Shared& shared)
      : a_(args), s_(shared), items_(args), rank_(cluster_rank()) {}

  // Before anything is sent between the two blocks.
  __device__ void prepare() const {
    if (threadIdx.x == 0) {
      for (std::uint32_t i = 0; i < kStages; ++i) {
        init(&s_.filled[i], 1);
        init(&s_.free[i], kWideBlocks * kWideWarps);
      }
      asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
    }
    __syncthreads();
    cluster_sync();
  }

  // One thread: pieces in the order in which the others use them.
  __device__ void fill() const {
    std::uint32_t i = 0, n_tiles = 0;
    for (std::uint32_t item = first_item(); item < items_.count; item += n_clusters()) {
      // Rows of the item before may still be in use.
      if (kResident && i > 0) barrier_wait(&s_.free[(i - 1) % kStages], (i - 1) / kStages & 1);
      for (int tile = first_tile(item); tile < end_tile(item); ++tile)
        for (int k = 0; k < pieces(); ++k, ++i) {
          const std::uint32_t slot = i % kStages;
          if (i >= kStages) barrier_wait(&s_.free[slot], (i / kStages - 1) & 1);
          const bool with_rows = !kResident || tile == first_tile(item);
          asm volatile(
              "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(address_of(&s_.filled[slot])),
              "r"(kWideColumnPiece + (with_rows ? kWideRowPiece : 0) + (k == 0 ? kWideBiasBytes : 0))
              : "memory");
          fetch_columns(tile, k, slot);
          // Nobody is more than kStages pieces behind: the bias before last is no longer read.
          if (k == 0) fetch(s_.bias[n_tiles++ % 2], a_.bias + tile * kWideColumns, kWideBiasBytes, slot);
          if (with_rows) fetch_rows(kWideBlocks * (item / a_.parts) + rank_, k, slot);
        }
    }
  }

  template <class Epilogue>
  __device__ void multiply_all(Epilogue& epilogue) {
    const int warp = threadIdx.x / 32;
    for (std::uint32_t item = first_item(); item < items_.count; item += n_clusters()) {
      const std::uint32_t row = (kWideBlocks * (item / a_.parts) + rank_) * kTileRows + 16 * warp;
      epilogue.begin(row, items_.n);
      for (int tile = first_tile(item); tile < end_tile(item); ++tile) {
        float c[32][4];
        multiply(c);
        epilogue.take(c, row, tile);
      }
      epilogue.end(row, static_cast<int>(item % a_.parts));
    }
  }

 private:
  __device__ std::uint32_t first_item() const { return blockIdx.x / kWideBlocks; }
  __device__ std::uint32_t n_clusters() const { return gridDim.x / kWideBlocks; }
  __device__ int first_tile(std::uint32_t item) const { return bound(item % a_.parts); }
  __device__ int end_tile(std::uint32_t item) const { return bound(item % a_.parts + 1); }
  __device__ int bound(std::uint32_t part) const {
    return static_cast<int>(static_cast<std::uint32_t>(a_.n_tiles) * part / a_.parts);
  }
  __device__ int pieces() const { return a_.depth / kTileDepth; }
  __device__ static std::uint32_t row_piece(int k, std::uint32_t slot) {
    return kResident ? static_cast<std::uint32_t>(k) : slot;
  }
  __device__ static void init(std::uint64_t* barrier, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(address_of(barrier)), "r"(count));
  }

  __device__ void fetch_rows(std::uint32_t tile, int k, std::uint32_t slot) const {
    const auto* from = reinterpret_cast<const unsigned char*>(a_.a) +
                       (static_cast<std::size_t>(tile) * pieces() + k) * kWideRowPiece;
    fetch(s_.rows[row_piece(k, slot)], from, kWideRowPiece, slot);
  }
  // To this block alone.
  __device__ void fetch(void* to, const void* from, std::uint32_t bytes, std::uint32_t slot) const {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::"r"(
            address_of(to)),
        "l"(from), "r"(bytes), "r"(address_of(&s_.filled[slot]))
        : "memory");
  }
  // This block's half of the piece, to both blocks.
  __device__ void fetch_columns(int tile, int k, std::uint32_t slot) const {
    constexpr std::uint32_t kShare = kWideColumnPiece / kWideBlocks;
    const auto* from = reinterpret_cast<const unsigned char*>(a_.w) +
                       (static_cast<std::size_t>(tile) * pieces() + k) * kWideColumnPiece + rank_ * kShare;
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1], %2, [%3], %4;\n" ::"r"(address_of(s_.columns[slot] + rank_ * kShare)),
        "l"(from), "r"(kShare), "r"(address_of(&s_.filled[slot])),
        "h"(static_cast<std::uint16_t>((1 << kWideBlocks) - 1))
        : "memory");
  }

  // c = the products of 64 rows of the group of warps and one tile of columns, and the biases.
  __device__ void multiply(float (&c)[32][4]) {
    barrier_wait(&s_.filled[used_ % kStages], used_ / kStages & 1);
    begin(c, s_.bias[used_tiles_++ % 2]);
    hold(c);
    for (int k = 0; k < pieces(); ++k) {
      const std::uint32_t slot = used_ % kStages;
      barrier_wait(&s_.filled[slot], used_ / kStages & 1);
      begin_products();
      constexpr int kRowSlab = kTileRows * 16, kColumnSlab = kWideColumns * 16;  // bytes of 8 of k
      const unsigned char* rows = s_.rows[row_piece(k, slot)] + threadIdx.x / 128 * 64 * 16;
#pragma unroll
      for (int i = 0; i < kTileDepth / 16; ++i)
        wgmma_256(c, weights_at(rows + 2 * i * kRowSlab, kRowSlab),
                  weights_at(s_.columns[slot] + 2 * i * kColumnSlab, kColumnSlab));
      asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 1;\n" ::: "memory");
      if (k > 0) give_back(used_ - 1);
      ++used_;
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
    hold(c);
    give_back(used_ - 1);
  }
  __device__ static void begin(float (&c)[32][4], const float* bias) {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const float2 b = load2(bias + 8 * i + 2 * (threadIdx.x % 4));
      c[i][0] = c[i][2] = b.x, c[i][1] = c[i][3] = b.y;
    }
  }
  // What reads the sums stays behind this, and what writes them before.
  __device__ static void hold(float (&c)[32][4]) {
#pragma unroll
    for (int i = 0; i < 32; ++i)
      asm volatile("" : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])::"memory");
  }
  // To both blocks: either may fill the slot anew when both have used it.
  __device__ void give_back(std::uint32_t number) const {
    if (threadIdx.x % 32 >= kWideBlocks) return;
    asm volatile(
        "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}\n" ::"r"(
            address_of(&s_.free[number % kStages])),
        "r"(threadIdx.x % 32)
        : "memory");
  }

  const WideProductArgs& a_;
  Shared& s_;
  WideItems items_;
  std::uint32_t rank_, used_ = 0, used_tiles_ = 0;
};

#endif

template <bool kResident, class Epilogue>
__global__ void __cluster_dims__(kWideBlocks, 1, 1) __launch_bounds__(kWideThreads, 1)
    wide_product(const __grid_constant__ WideProductArgs args, Epilogue epilogue) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(128) unsigned char memory[];
  WideWorker<kResident> worker(args, *reinterpret_cast<WideShared<kResident>*>(memory));
  worker.prepare();
  if (threadIdx.x / 32 < kWideWarps)
    worker.multiply_all(epilogue);
  else if (threadIdx.x % 32 == 0)
    worker.fill();
  __syncwarp();
  cluster_sync();  // a block must not end while the other may still write to it
#else
  __trap();
#endif
}

}  // namespace deeptail::cuda
