// The largest logits of rows of at most 128 numbers (column_maxima.cuh): a block keeps 512 columns or more in shared memory,
// and rows stream past them. So what comes from the L2 cache is the rows, once for every part of the columns, and not
// all columns for every 128 rows, which would take longer than the products.
//
// The two groups of four warps take turns: while one looks for the largest of its logits, the other's products keep the
// tensor cores busy. Side by side both would multiply, and then both look.
#pragma once

#include "compute_cuda/activations/tile_maxima.cuh"
#include "compute_cuda/exact/twofold_rows.cuh"
#include "compute_cuda/tiles/products.cuh"
#include "compute_cuda/tiles/weight_stream.cuh"
#include "compute_cuda/tiles/wide_wgmma.cuh"

namespace deeptail::cuda {

inline constexpr int kMaximaWarps = 8, kMaximaThreads = 32 * (kMaximaWarps + 1);
inline constexpr int kRowPieceBytes = kTileRows * kTileDepth * 2;
inline constexpr int kColumnPieceBytes = kMaximaColumns * kTileDepth * 2;

inline constexpr int kKeptPieces = 4, kKeptStages = 3, kKeptRowPieces = 2;
struct KeptShared {
  unsigned char columns[kKeptPieces][kColumnPieceBytes];
  unsigned char rows[kKeptStages][kKeptRowPieces * kRowPieceBytes];
  std::uint64_t loaded, filled[kKeptStages], free[kKeptStages];
};

// Column tiles that a block keeps, and parts of the columns.
__host__ __device__ inline int kept_tiles(int width) { return kKeptPieces / (width / kTileDepth); }
__host__ __device__ inline int kept_parts(int width, int n_tiles) {
  return (n_tiles + kept_tiles(width) - 1) / kept_tiles(width);
}
// Can they be kept, by so many blocks?
inline bool columns_fit(int width, int n_tiles, int n_blocks) {
  return width <= kKeptRowPieces * kTileDepth && kept_parts(width, n_tiles) <= n_blocks;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

class KeptWorker {
 public:
  __device__ KeptWorker(const MaximaArgs& a, KeptShared& shared) : a_(a), s_(shared) {
    const auto parts = static_cast<std::uint32_t>(kept_parts(a.width, a.n_tiles));
    const std::uint32_t part = blockIdx.x % parts;
    n_ = a.n_device != nullptr ? min(*a.n_device, a.n) : a.n;
    row_tiles_ = (n_ + kTileRows - 1) / kTileRows;
    first_row_tile_ = blockIdx.x / parts;
    step_ = (gridDim.x - part + parts - 1) / parts;  // blocks with this part
    first_tile_ = static_cast<int>(part) * kept_tiles(a.width);
    end_tile_ = min(first_tile_ + kept_tiles(a.width), a.n_tiles);
  }

  // The warp that fills the ring.
  __device__ void fill() {
    if (threadIdx.x % 32 != 0 || first_row_tile_ >= row_tiles_) return;
    const std::uint32_t bytes = (end_tile_ - first_tile_) * pieces() * kColumnPieceBytes;
    copy(s_.columns,
         reinterpret_cast<const unsigned char*>(a_.w) +
             static_cast<std::size_t>(first_tile_) * pieces() * kColumnPieceBytes,
         bytes, s_.loaded);
    const std::uint32_t row_bytes = pieces() * kRowPieceBytes;
    std::uint32_t i = 0;
    for (std::uint32_t tile = first_row_tile_; tile < row_tiles_; tile += step_, ++i) {
      const std::uint32_t slot = i % kKeptStages;
      if (i >= kKeptStages) barrier_wait(&s_.free[slot], (i / kKeptStages - 1) & 1);
      copy(s_.rows[slot],
           reinterpret_cast<const unsigned char*>(a_.y) + static_cast<std::size_t>(tile) * row_bytes,
           row_bytes, s_.filled[slot]);
    }
  }

  __device__ void multiply_all() {
    if (first_row_tile_ >= row_tiles_) return;
    if (pieces() == 1)
      multiply_rows<1>();
    else
      multiply_rows<kKeptRowPieces>();
  }

 private:
  // A number of pieces that the compiler knows: a loop that it cannot unroll moves the sums between products, which then
  // wait for each other.
  template <int kPieces>
  __device__ void multiply_rows() {
    const int warp = threadIdx.x / 32;
    if (group() == 1) give_turn();  // the first group begins
    barrier_wait(&s_.loaded, 0);
    std::uint32_t i = 0;
    for (std::uint32_t tile = first_row_tile_; tile < row_tiles_; tile += step_, ++i) {
      const std::uint32_t slot = i % kKeptStages;
      const LaneRows rows(a_, tile * kTileRows + 16 * warp, n_);
      barrier_wait(&s_.filled[slot], i / kKeptStages & 1);
      for (int t = first_tile_; t < end_tile_; ++t) {
        float c[32][4];
        multiply<kPieces>(c, s_.rows[slot], s_.columns[(t - first_tile_) * kPieces]);
        if (t + 1 == end_tile_) give_back(slot);
        store_maxima(a_, c, rows, t);
      }
    }
  }

  __device__ int pieces() const { return a_.width / kTileDepth; }
  __device__ static void copy(void* to, const unsigned char* from, std::uint32_t bytes,
                              std::uint64_t& barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(address_of(&barrier)),
                 "r"(bytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::"r"(
            address_of(to)),
        "l"(from), "r"(bytes), "r"(address_of(&barrier))
        : "memory");
  }

  // Turns at the products, by hardware barriers (0 is __syncthreads'). Both groups have as many.
  __device__ static unsigned group() { return threadIdx.x / 128; }
  __device__ static void wait_for_turn() {
    asm volatile("bar.sync %0, %1;\n" ::"r"(1 + group()), "n"(32 * kMaximaWarps) : "memory");
  }
  __device__ static void give_turn() {
    asm volatile("bar.arrive %0, %1;\n" ::"r"(2 - group()), "n"(32 * kMaximaWarps) : "memory");
  }

  // c = the products of 64 rows of the group of warps and a tile of columns.
  template <int kPieces>
  __device__ static void multiply(float (&c)[32][4], const unsigned char* rows,
                                  const unsigned char* columns) {
#pragma unroll
    for (int n = 0; n < 32; ++n) c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0.0f;
    constexpr int kRowSlab = kTileRows * 16, kColumnSlab = kMaximaColumns * 16;  // bytes of 8 of k
    wait_for_turn();
    begin_products();
#pragma unroll
    for (int k = 0; k < kPieces; ++k) {
      const unsigned char* own = rows + k * kRowPieceBytes + group() * 64 * 16;
#pragma unroll
      for (int i = 0; i < kTileDepth / 16; ++i)
        wgmma_256(c, weights_at(own + 2 * i * kRowSlab, kRowSlab),
                  weights_at(columns + k * kColumnPieceBytes + 2 * i * kColumnSlab, kColumnSlab));
    }
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
    give_turn();  // those of the other group queue up behind these
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
  }
  __device__ void give_back(std::uint32_t slot) const {
    if (threadIdx.x % 32 != 0) return;
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(address_of(&s_.free[slot])) : "memory");
  }

  const MaximaArgs& a_;
  KeptShared& s_;
  std::uint32_t n_, row_tiles_, first_row_tile_, step_;
  int first_tile_, end_tile_;
};

__device__ inline void find_maxima_of_kept(const MaximaArgs& args, unsigned char* memory) {
  auto& shared = *reinterpret_cast<KeptShared*>(memory);
  if (threadIdx.x == 0) {
    const auto init = [](std::uint64_t* barrier, int arrivals) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(address_of(barrier)), "r"(arrivals));
    };
    init(&shared.loaded, 1);
    for (int i = 0; i < kKeptStages; ++i) init(&shared.filled[i], 1), init(&shared.free[i], kMaximaWarps);
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
  }
  __syncthreads();
  KeptWorker worker(args, shared);
  if (threadIdx.x / 32 == kMaximaWarps)
    worker.fill();
  else
    worker.multiply_all();
}

#endif

}  // namespace deeptail::cuda
