// The largest logits of rows, in fp16 with fp32 sums: of every tile of 256 columns, so that no logit is
// written to memory and the few that matter can be found again (score_rows.cuh).
//
// A block takes 128 rows through a part of the columns. On Hopper the rows stay in shared memory (up to 512
// numbers each; longer ones come along with the weights), one warp streams the weights, and two groups of
// four warps multiply 64 rows by 256 columns at a time. Blocks with the same part of the columns run side by
// side, so the weights come from the L2 cache. For short rows it is the other way round (kept_columns.cuh). Elsewhere all warps load a piece and multiply it by mma.sync.
#pragma once

#include "compute_cuda/activations/kept_columns.cuh"
#include "compute_cuda/exact/twofold_rows.cuh"
#include "compute_cuda/tiles/products.cuh"
#include "compute_cuda/tiles/wide_wgmma.cuh"

namespace deeptail::cuda {

enum class MaximaWay { kKept, kResident, kStreamed, kPlain };  // the first three on Hopper only

inline constexpr int kResidentPieces = 8;  // rows of at most 512 numbers stay
// Shared memory.
inline constexpr int kResidentStages = 3, kStreamedStages = 4;
template <bool kResident>
struct MaximaShared {
  static constexpr int kStages = kResident ? kResidentStages : kStreamedStages;
  static constexpr int kRowPieces = kResident ? kResidentPieces : kStages;
  unsigned char rows[kRowPieces][kRowPieceBytes];
  unsigned char columns[kStages][kColumnPieceBytes];
  std::uint64_t filled[kStages], free[kStages];
};
inline constexpr std::size_t kPlainMaximaBytes = kRowPieceBytes + kColumnPieceBytes;

// A row tile and a part of the column tiles: items of work, part by part.
struct MaximaItems {
  std::uint32_t n, row_tiles, parts;
  int n_tiles;
  __device__ explicit MaximaItems(const MaximaArgs& a) : n_tiles(a.n_tiles) {
    n = a.n_device != nullptr ? min(*a.n_device, a.n) : a.n;
    row_tiles = (n + kTileRows - 1) / kTileRows;
    parts = row_tiles == 0 ? 0 : min(max(gridDim.x / row_tiles, 1u), static_cast<std::uint32_t>(n_tiles));
  }
  __device__ std::uint32_t count() const { return row_tiles * parts; }
  __device__ std::uint32_t row_tile(std::uint32_t item) const { return item % row_tiles; }
  __device__ int first_tile(std::uint32_t item) const { return bound(item / row_tiles); }
  __device__ int end_tile(std::uint32_t item) const { return bound(item / row_tiles + 1); }

 private:
  __device__ int bound(std::uint32_t part) const {
    return static_cast<int>(static_cast<std::uint64_t>(n_tiles) * part / parts);
  }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <bool kResident>
class MaximaWorker {
  using Shared = MaximaShared<kResident>;
  static constexpr std::uint32_t kStages = Shared::kStages;

 public:
  __device__ MaximaWorker(const MaximaArgs& args, Shared& shared) : a_(args), s_(shared), items_(args) {}

  // The warp that fills the ring, in the order in which the others use it.
  __device__ void fill() {
    if (threadIdx.x % 32 != 0) return;
    std::uint32_t i = 0;
    for (std::uint32_t item = blockIdx.x; item < items_.count(); item += gridDim.x) {
      // Rows of the item before may still be in use.
      if (kResident && i > 0) barrier_wait(&s_.free[(i - 1) % kStages], (i - 1) / kStages & 1);
      const int first = items_.first_tile(item), end = items_.end_tile(item);
      for (int tile = first; tile < end; ++tile)
        for (int k = 0; k < pieces(); ++k, ++i) {
          const std::uint32_t slot = i % kStages;
          if (i >= kStages) barrier_wait(&s_.free[slot], (i / kStages - 1) & 1);
          const bool with_rows = !kResident || tile == first;
          asm volatile(
              "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(address_of(&s_.filled[slot])),
              "r"(kColumnPieceBytes + (with_rows ? kRowPieceBytes : 0))
              : "memory");
          copy(s_.columns[slot], a_.w, static_cast<std::size_t>(tile), k, kColumnPieceBytes, slot);
          if (with_rows)
            copy(s_.rows[row_piece(k, slot)], a_.y, items_.row_tile(item), k, kRowPieceBytes, slot);
        }
    }
  }

  __device__ void multiply_all() {
    const int warp = threadIdx.x / 32;
    for (std::uint32_t item = blockIdx.x; item < items_.count(); item += gridDim.x) {
      const LaneRows rows(a_, items_.row_tile(item) * kTileRows + 16 * warp, items_.n);
      for (int tile = items_.first_tile(item); tile < items_.end_tile(item); ++tile) {
        float c[32][4];
        multiply(c);
        store_maxima(a_, c, rows, tile);
      }
    }
  }

 private:
  __device__ int pieces() const { return a_.width / kTileDepth; }
  __device__ static std::uint32_t row_piece(int k, std::uint32_t slot) {
    return kResident ? static_cast<std::uint32_t>(k) : slot;
  }
  __device__ void copy(void* to, const __half* from, std::size_t tile, int k, std::uint32_t bytes,
                       std::uint32_t slot) const {
    const auto* source = reinterpret_cast<const unsigned char*>(from) +
                         (tile * static_cast<std::size_t>(pieces()) + static_cast<std::size_t>(k)) * bytes;
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::"r"(
            address_of(to)),
        "l"(source), "r"(bytes), "r"(address_of(&s_.filled[slot]))
        : "memory");
  }

  // c = the products of 64 rows of the group of warps and one tile of columns.
  __device__ void multiply(float (&c)[32][4]) {
#pragma unroll
    for (int n = 0; n < 32; ++n) c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0.0f;
    for (int k = 0; k < pieces(); ++k) {
      const std::uint32_t slot = used_ % kStages;
      barrier_wait(&s_.filled[slot], used_ / kStages & 1);
      begin_products();
      constexpr int kRowSlab = kTileRows * 16, kColumnSlab = kMaximaColumns * 16;  // bytes of 8 of k
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
    give_back(used_ - 1);
  }
  __device__ void give_back(std::uint32_t number) const {
    if (threadIdx.x % 32 != 0) return;
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(address_of(&s_.free[number % kStages]))
                 : "memory");
  }

  const MaximaArgs& a_;
  Shared& s_;
  MaximaItems items_;
  std::uint32_t used_ = 0;
};

template <bool kResident>
__device__ void find_maxima(const MaximaArgs& args, unsigned char* memory) {
  auto& shared = *reinterpret_cast<MaximaShared<kResident>*>(memory);
  if (threadIdx.x == 0) {
    for (int i = 0; i < MaximaShared<kResident>::kStages; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(address_of(&shared.filled[i])), "r"(1));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(address_of(&shared.free[i])),
                   "r"(kMaximaWarps));
    }
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
  }
  __syncthreads();
  MaximaWorker<kResident> worker(args, shared);
  if (threadIdx.x / 32 == kMaximaWarps)
    worker.fill();
  else
    worker.multiply_all();
}

#endif

// One piece at a time, by all warps.
__device__ inline void find_maxima_plain(const MaximaArgs& a, unsigned char* memory) {
  unsigned char *rows = memory, *columns = memory + kRowPieceBytes;
  const MaximaItems items(a);
  const int pieces = a.width / kTileDepth, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int matrix = lane / 8, r = lane % 8;
  const auto load = [&](unsigned char* to, const __half* from, std::size_t tile, int k, int bytes) {
    const auto* source = reinterpret_cast<const unsigned char*>(from) +
                         (tile * static_cast<std::size_t>(pieces) + static_cast<std::size_t>(k)) * bytes;
    for (int i = 16 * static_cast<int>(threadIdx.x); i < bytes; i += 16 * kMaximaThreads)
      copy_async(to + i, source + i);
  };
  for (std::uint32_t item = blockIdx.x; item < items.count(); item += gridDim.x)
    for (int tile = items.first_tile(item); tile < items.end_tile(item); ++tile) {
      float c[32][4] = {};
      for (int k = 0; k < pieces; ++k) {
        __syncthreads();  // the piece before may still be read
        load(rows, a.y, items.row_tile(item), k, kRowPieceBytes);
        load(columns, a.w, static_cast<std::size_t>(tile), k, kColumnPieceBytes);
        asm volatile("cp.async.wait_all;\n" ::: "memory");
        __syncthreads();
        if (warp == kMaximaWarps) continue;
        for (int i = 0; i < kTileDepth / 16; ++i) {
          std::uint32_t factor[4];
          load_matrices(factor,
                        reinterpret_cast<const __half*>(
                            rows + ((2 * i + matrix / 2) * kTileRows + 16 * warp + matrix % 2 * 8 + r) * 16));
#pragma unroll
          for (int n = 0; n < 32; n += 2) {
            std::uint32_t b[4];
            load_matrices(
                b, reinterpret_cast<const __half*>(
                       columns + ((2 * i + matrix % 2) * kMaximaColumns + 8 * (n + matrix / 2) + r) * 16));
            mma(c[n], factor, b[0], b[1]);
            mma(c[n + 1], factor, b[2], b[3]);
          }
        }
      }
      if (warp == kMaximaWarps) continue;
      const LaneRows own(a, items.row_tile(item) * kTileRows + 16 * warp, items.n);
      store_maxima(a, c, own, tile);
    }
}

template <MaximaWay kWay>
__global__ void __launch_bounds__(kMaximaThreads, 1) column_maxima(const __grid_constant__ MaximaArgs args) {
  extern __shared__ __align__(128) unsigned char memory[];
  if constexpr (kWay == MaximaWay::kPlain) {
    find_maxima_plain(args, memory);
  } else {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    if constexpr (kWay == MaximaWay::kKept)
      find_maxima_of_kept(args, memory);
    else
      find_maxima<kWay == MaximaWay::kResident>(args, memory);
#else
    __trap();
#endif
  }
}

// The kernel and its shared memory.
struct MaximaKernel {
  void (*kernel)(MaximaArgs);
  std::size_t bytes;
};
inline MaximaKernel maxima_kernel(MaximaWay way) {
  switch (way) {
    case MaximaWay::kKept:
      return {column_maxima<MaximaWay::kKept>, sizeof(KeptShared)};
    case MaximaWay::kResident:
      return {column_maxima<MaximaWay::kResident>, sizeof(MaximaShared<true>)};
    case MaximaWay::kStreamed:
      return {column_maxima<MaximaWay::kStreamed>, sizeof(MaximaShared<false>)};
    case MaximaWay::kPlain:
      break;
  }
  return {column_maxima<MaximaWay::kPlain>, kPlainMaximaBytes};
}

}  // namespace deeptail::cuda
