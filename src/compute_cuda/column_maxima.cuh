// The largest logits of rows, in fp16 with fp32 sums: of every tile of 256 columns, so that no logit is
// written to memory and the few that matter can be found again (score_rows.cuh).
//
// A block takes 128 rows through a part of the columns. On Hopper the rows stay in shared memory (up to 512
// numbers each; longer ones come along with the weights), one warp streams the weights, and two groups of
// four warps multiply 64 rows by 256 columns at a time. Blocks with the same part of the columns run side by
// side, so the weights come from the L2 cache.
#pragma once

#include "compute_cuda/column_weights.cuh"
#include "compute_cuda/products.cuh"
#include "compute_cuda/split_rows.cuh"

namespace deeptail::cuda {

struct MaximaArgs {
  const __half* y;    // [n, width], in the order of split_rows.cuh
  const __half* w;    // as ColumnWeights
  const float* bias;  // [n_tiles * 256]
  std::uint32_t n;
  const std::uint32_t* n_device;
  int width, n_tiles;
  float* maxima;  // [n, n_tiles]
};

inline constexpr int kMaximaWarps = 8, kMaximaThreads = 32 * (kMaximaWarps + 1);
inline constexpr int kRowPieceBytes = kTileRows * kTileDepth * 2;
inline constexpr int kColumnPieceBytes = kMaximaColumns * kTileDepth * 2;
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
inline constexpr int kOtherMaximaBytes = kRowPieceBytes + kColumnPieceBytes;  // elsewhere than on Hopper

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

// c: what a warp has of 16 rows, from row on, and the 256 columns of a tile (fragments.cuh).
__device__ inline void store_maxima(const MaximaArgs& a, const float (&c)[32][4], std::uint32_t row,
                                    std::uint32_t n, int tile) {
  const int lane = threadIdx.x % 32;
  const float* bias = a.bias + tile * kMaximaColumns + 2 * (lane % 4);
  float best[2] = {-INFINITY, -INFINITY};
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const float2 b = load2(bias + 8 * i);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      best[half] = fmaxf(best[half], fmaxf(c[i][2 * half] + b.x, c[i][2 * half + 1] + b.y));
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float m = row_max(best[half]);
    const std::uint32_t r = row + 8 * half + lane / 4;
    if (lane % 4 == 0 && r < n) a.maxima[static_cast<std::size_t>(r) * a.n_tiles + tile] = m;
  }
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ inline std::uint32_t address_of(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

// c += 64 rows by 256 columns, 16 of the inner dimension, both factors in shared memory.
__device__ inline void wgmma_256(float (&c)[32][4], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,"
      "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"
      "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,"
      "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,"
      "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}, "
      "%128, %129, 1, 1, 1, 0, 0;\n"
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
        "+f"(c[15][0]), "+f"(c[15][1]), "+f"(c[15][2]), "+f"(c[15][3]), "+f"(c[16][0]), "+f"(c[16][1]),
        "+f"(c[16][2]), "+f"(c[16][3]), "+f"(c[17][0]), "+f"(c[17][1]), "+f"(c[17][2]), "+f"(c[17][3]),
        "+f"(c[18][0]), "+f"(c[18][1]), "+f"(c[18][2]), "+f"(c[18][3]), "+f"(c[19][0]), "+f"(c[19][1]),
        "+f"(c[19][2]), "+f"(c[19][3]), "+f"(c[20][0]), "+f"(c[20][1]), "+f"(c[20][2]), "+f"(c[20][3]),
        "+f"(c[21][0]), "+f"(c[21][1]), "+f"(c[21][2]), "+f"(c[21][3]), "+f"(c[22][0]), "+f"(c[22][1]),
        "+f"(c[22][2]), "+f"(c[22][3]), "+f"(c[23][0]), "+f"(c[23][1]), "+f"(c[23][2]), "+f"(c[23][3]),
        "+f"(c[24][0]), "+f"(c[24][1]), "+f"(c[24][2]), "+f"(c[24][3]), "+f"(c[25][0]), "+f"(c[25][1]),
        "+f"(c[25][2]), "+f"(c[25][3]), "+f"(c[26][0]), "+f"(c[26][1]), "+f"(c[26][2]), "+f"(c[26][3]),
        "+f"(c[27][0]), "+f"(c[27][1]), "+f"(c[27][2]), "+f"(c[27][3]), "+f"(c[28][0]), "+f"(c[28][1]),
        "+f"(c[28][2]), "+f"(c[28][3]), "+f"(c[29][0]), "+f"(c[29][1]), "+f"(c[29][2]), "+f"(c[29][3]),
        "+f"(c[30][0]), "+f"(c[30][1]), "+f"(c[30][2]), "+f"(c[30][3]), "+f"(c[31][0]), "+f"(c[31][1]),
        "+f"(c[31][2]), "+f"(c[31][3])
      : "l"(a), "l"(b));
}

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
      const std::uint32_t row = items_.row_tile(item) * kTileRows + 16 * warp;
      for (int tile = items_.first_tile(item); tile < items_.end_tile(item); ++tile) {
        float c[32][4];
        multiply(c);
        store_maxima(a_, c, row, items_.n, tile);
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

#else

// One piece at a time, by all warps: for other devices.
template <bool kResident>
__device__ void find_maxima(const MaximaArgs& a, unsigned char* memory) {
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
      if (warp < kMaximaWarps)
        store_maxima(a, c, items.row_tile(item) * kTileRows + 16 * warp, items.n, tile);
    }
}

#endif

template <bool kResident>
__global__ void __launch_bounds__(kMaximaThreads, 1) column_maxima(const __grid_constant__ MaximaArgs args) {
  extern __shared__ __align__(128) unsigned char memory[];
  find_maxima<kResident>(args, memory);
}

}  // namespace deeptail::cuda
