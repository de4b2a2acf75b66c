// The product kernel: 128 rows by 128 columns at a time, operands streamed to shared memory in pieces of 64
// of the inner dimension, results given to an epilogue in registers.
//
// With a = a_high + a_low and w likewise, a_high w_high + a_low w_high + a_high w_low; what is left out is
// 2^-22 of the product.
//
// A warp holds 16 rows of the results as C tiles (fragments.cuh). An epilogue has
//   begin(row, n)            the warp's first row, and how many rows there are in all
//   take(c, row, column)     16 tiles of columns [column, column + 128)
//   end(row, slice)          after the last columns
#pragma once

#include "compute_cuda/exact/twofold_rows.cuh"
#include "compute_cuda/tiles/products.cuh"

namespace deeptail::cuda {

struct ProductArgs {
  const __half *a_high, *a_low, *w_high, *w_low;  // w_low may be null
  std::uint32_t n;
  const std::uint32_t* n_device;
  int depth, n_tiles, slices;  // n_tiles: column tiles, in `slices` parts
};

inline constexpr int kProductWarps = 8, kProductThreads = 32 * (kProductWarps + 1);
inline constexpr int kPieceBytes = kTileRows * kTileDepth * 2;
// With exact weights there are three operands, and room for two thread blocks on a multiprocessor: one
// multiplies while the other stores. With a low part there are four, and one block.
template <bool kLow>
struct RingSizes {
  static constexpr int kOperands = kLow ? 4 : 3, kStages = kLow ? 3 : 2, kBlocks = kLow ? 1 : 2;
  static constexpr int kBytes = kStages * (kOperands * kPieceBytes + 16);
};
inline constexpr int kOnePieceBytes = 4 * kPieceBytes;  // on other devices

// What the blocks of a grid do: a row tile and a part of the columns each, in turn.
struct ProductItems {
  std::uint32_t n, n_items;
  __device__ explicit ProductItems(const ProductArgs& args) {
    n = args.n_device != nullptr ? min(*args.n_device, args.n) : args.n;
    n_items = (n + kTileRows - 1) / kTileRows * args.slices;
  }
};
__device__ inline int first_tile(const ProductArgs& args, int slice) {
  return static_cast<int>(static_cast<long long>(args.n_tiles) * slice / args.slices);
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <bool kLow>
struct ProductShared {
  static constexpr int kStages = RingSizes<kLow>::kStages;
  unsigned char piece[kStages][RingSizes<kLow>::kOperands][kPieceBytes];  // a high, a low, w high, w low
  std::uint64_t filled[kStages], free[kStages];
};
static_assert(sizeof(ProductShared<true>) == RingSizes<true>::kBytes);
static_assert(sizeof(ProductShared<false>) == RingSizes<false>::kBytes);

__device__ inline std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

__device__ inline void wgmma_shared(float (&c)[16][4], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
      "%64, %65, 1, 1, 1, 0, 0;\n"
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]),
        "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),
        "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]),
        "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),
        "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]),
        "+f"(c[7][2]), "+f"(c[7][3]), "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]), "+f"(c[8][3]),
        "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]), "+f"(c[10][0]), "+f"(c[10][1]),
        "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]), "+f"(c[11][3]),
        "+f"(c[12][0]), "+f"(c[12][1]), "+f"(c[12][2]), "+f"(c[12][3]), "+f"(c[13][0]), "+f"(c[13][1]),
        "+f"(c[13][2]), "+f"(c[13][3]), "+f"(c[14][0]), "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]),
        "+f"(c[15][0]), "+f"(c[15][1]), "+f"(c[15][2]), "+f"(c[15][3])
      : "l"(a), "l"(b));
}

// The warp that fills the ring, in the order in which the others use it.
template <bool kLow>
__device__ void fill_ring(const ProductArgs& args, const ProductItems& items, ProductShared<kLow>& shared) {
  if (threadIdx.x % 32 != 0) return;
  constexpr std::uint32_t kStages = RingSizes<kLow>::kStages;
  const int pieces = args.depth / kTileDepth;
  std::uint32_t i = 0;
  for (std::uint32_t item = blockIdx.x; item < items.n_items; item += gridDim.x) {
    const std::uint32_t row_tile = item / args.slices;
    const int slice = static_cast<int>(item % args.slices), end = first_tile(args, slice + 1);
    for (int tile = first_tile(args, slice); tile < end; ++tile)
      for (int k = 0; k < pieces; ++k, ++i) {
        const std::uint32_t slot = i % kStages;
        if (i >= kStages) barrier_wait(&shared.free[slot], (i / kStages - 1) & 1);
        const std::uint32_t barrier = shared_address(&shared.filled[slot]);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier),
                     "r"(RingSizes<kLow>::kOperands * kPieceBytes)
                     : "memory");
        const auto copy = [&](int which, const __half* from, std::size_t tile_number) {
          const std::size_t at =
              (tile_number * pieces + static_cast<std::size_t>(k)) * (kPieceBytes / sizeof(__half));
          asm volatile(
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::
                  "r"(shared_address(shared.piece[slot][which])),
              "l"(from + at), "r"(kPieceBytes), "r"(barrier)
              : "memory");
        };
        copy(0, args.a_high, row_tile);
        copy(1, args.a_low, row_tile);
        copy(2, args.w_high, static_cast<std::size_t>(tile));
        if constexpr (kLow) copy(3, args.w_low, static_cast<std::size_t>(tile));
      }
  }
}

// kLow: whether the weights have a low part.
template <bool kLow>
class ProductRing {
  static constexpr std::uint32_t kStages = RingSizes<kLow>::kStages;

 public:
  __device__ ProductRing(const ProductArgs& args, ProductShared<kLow>& shared) : args_(args), s_(shared) {}

  // c = the products of one row tile and one column tile.
  __device__ void multiply(float (&c)[16][4]) {
#pragma unroll
    for (int n = 0; n < 16; ++n) c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0.0f;
    for (int k = 0; k < args_.depth / kTileDepth; ++k) {
      const std::uint32_t slot = used_ % kStages;
      barrier_wait(&s_.filled[slot], used_ / kStages & 1);
      multiply_piece(c, slot);
      asm volatile("wgmma.wait_group.sync.aligned 1;\n" ::: "memory");
      if (k > 0) give_back(used_ - 1);
      ++used_;
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
    give_back(used_ - 1);
  }

 private:
  __device__ void multiply_piece(float (&c)[16][4], std::uint32_t slot) const {
    constexpr int kSlab = kTileRows * 16;  // bytes of 8 of the inner dimension
    const int own = static_cast<int>(threadIdx.x / 128) * 64 * 16;
    const auto at = [&](int which, int k, int first) {
      return weights_at(s_.piece[slot][which] + 2 * k * kSlab + first, kSlab);
    };
    begin_products();
#pragma unroll
    for (int k = 0; k < kTileDepth / 16; ++k) {
      wgmma_shared(c, at(0, k, own), at(2, k, 0));
      wgmma_shared(c, at(1, k, own), at(2, k, 0));
      if constexpr (kLow) wgmma_shared(c, at(0, k, own), at(3, k, 0));
    }
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
  }
  __device__ void give_back(std::uint32_t number) const {
    if (threadIdx.x % 32 != 0) return;
    asm volatile(
        "mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(shared_address(&s_.free[number % kStages]))
        : "memory");
  }

  const ProductArgs& args_;
  ProductShared<kLow>& s_;
  std::uint32_t used_ = 0;
};

template <bool kLow, class Epilogue>
__device__ void run_products(const ProductArgs& args, Epilogue& epilogue, ProductShared<kLow>& shared) {
  constexpr int kStages = RingSizes<kLow>::kStages;
  const ProductItems items(args);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(shared_address(&shared.filled[i])),
                   "r"(1));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(shared_address(&shared.free[i])),
                   "r"(kProductWarps));
    }
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
  }
  __syncthreads();
  const int warp = threadIdx.x / 32;
  if (warp == kProductWarps) return fill_ring(args, items, shared);
  ProductRing<kLow> ring(args, shared);
  for (std::uint32_t item = blockIdx.x; item < items.n_items; item += gridDim.x) {
    const std::uint32_t row = item / args.slices * kTileRows + 16 * warp;
    const int slice = static_cast<int>(item % args.slices), end = first_tile(args, slice + 1);
    epilogue.begin(row, items.n);
    for (int tile = first_tile(args, slice); tile < end; ++tile) {
      float c[16][4];
      ring.multiply(c);
      epilogue.take(c, row, tile * kTileColumns);
    }
    epilogue.end(row, slice);
  }
}

#else

// One piece at a time, by all warps: for other devices.
template <bool>
struct ProductShared {
  unsigned char piece[4][kPieceBytes];
};

template <bool kLow>
__device__ void load_pieces(const ProductArgs& args, std::size_t row_tile, std::size_t tile, int k,
                            ProductShared<kLow>& shared) {
  const int pieces = args.depth / kTileDepth;
  const auto copy = [&](int which, const __half* from, std::size_t tile_number) {
    const auto* source = reinterpret_cast<const unsigned char*>(from) +
                         (tile_number * pieces + static_cast<std::size_t>(k)) * kPieceBytes;
    for (int i = 16 * threadIdx.x; i < kPieceBytes; i += 16 * kProductThreads)
      copy_async(shared.piece[which] + i, source + i);
  };
  copy(0, args.a_high, row_tile);
  copy(1, args.a_low, row_tile);
  copy(2, args.w_high, tile);
  if constexpr (kLow) copy(3, args.w_low, tile);
  asm volatile("cp.async.wait_all;\n" ::: "memory");
}

template <bool kLow>
__device__ void multiply_piece(const ProductShared<kLow>& shared, int warp, int lane, float (&c)[16][4]) {
  const auto at = [&](int which, int k8, int row) {
    return reinterpret_cast<const __half*>(shared.piece[which] + (k8 * kTileRows + row) * 16);
  };
  const int matrix = lane / 8, r = lane % 8;
  for (int k = 0; k < kTileDepth / 16; ++k) {
    std::uint32_t a[2][4];
    for (int which = 0; which < 2; ++which)
      load_matrices(a[which], at(which, 2 * k + matrix / 2, 16 * warp + matrix % 2 * 8 + r));
#pragma unroll
    for (int n = 0; n < 16; n += 2) {
      std::uint32_t b[4];
      load_matrices(b, at(2, 2 * k + matrix % 2, 8 * (n + matrix / 2) + r));
#pragma unroll
      for (int which = 0; which < 2; ++which) {
        mma(c[n], a[which], b[0], b[1]);
        mma(c[n + 1], a[which], b[2], b[3]);
      }
      if constexpr (!kLow) continue;
      load_matrices(b, at(3, 2 * k + matrix % 2, 8 * (n + matrix / 2) + r));
      mma(c[n], a[0], b[0], b[1]);
      mma(c[n + 1], a[0], b[2], b[3]);
    }
  }
}

template <bool kLow, class Epilogue>
__device__ void run_products(const ProductArgs& args, Epilogue& epilogue, ProductShared<kLow>& shared) {
  const ProductItems items(args);
  const int warp = threadIdx.x / 32;
  for (std::uint32_t item = blockIdx.x; item < items.n_items; item += gridDim.x) {
    const std::uint32_t row_tile = item / args.slices, row = row_tile * kTileRows + 16 * warp;
    const int slice = static_cast<int>(item % args.slices), end = first_tile(args, slice + 1);
    if (warp < kProductWarps) epilogue.begin(row, items.n);
    for (int tile = first_tile(args, slice); tile < end; ++tile) {
      float c[16][4] = {};
      for (int k = 0; k < args.depth / kTileDepth; ++k) {
        __syncthreads();  // the piece before may still be read
        load_pieces(args, row_tile, static_cast<std::size_t>(tile), k, shared);
        __syncthreads();
        if (warp < kProductWarps) multiply_piece(shared, warp, threadIdx.x % 32, c);
      }
      if (warp < kProductWarps) epilogue.take(c, row, tile * kTileColumns);
    }
    if (warp < kProductWarps) epilogue.end(row, slice);
  }
}

#endif

template <bool kLow, class Epilogue>
__global__ void __launch_bounds__(kProductThreads, RingSizes<kLow>::kBlocks)
    twofold_product(const __grid_constant__ ProductArgs args, Epilogue epilogue) {
  extern __shared__ __align__(128) unsigned char memory[];
  run_products<kLow>(args, epilogue, *reinterpret_cast<ProductShared<kLow>*>(memory));
}

}  // namespace deeptail::cuda
