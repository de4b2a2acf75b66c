// Weight matrices as streams of B tiles (fragments.cuh), made on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "compute_cuda/dense.h"

namespace deeptail::cuda {

using Halves = std::vector<std::uint16_t>;

// How tiles lie in a chunk.
enum class TileOrder {
  // [tile pair][lane] of 16 bytes = what the lane holds of two B tiles of mma.sync: neighbours in k where
  // whole columns are
  // used, in n where whole rows are. A lane reads what it needs in one conflict-free load.
  kMma,
  // [k / 8][n / 8][n % 8][k % 8]: core matrices of wgmma.
  kWgmma,
};

// The stream of the fused blocks, all but the last one: of every block but the first the projections, then
// W_O and MLP.
Halves pack_blocks(const DenseModel& model, TileOrder order);
// One block's W_O and MLP.
Halves pack_rest(const DenseBlock& block, std::size_t d_mlp, TileOrder order);
// Whether fp16 holds every weight of that.
bool rest_is_exact(const DenseBlock& block);

// Normalised rows before the last block lie in memory in this order of columns: column 8 n + 2 t + i at 32 t
// + 2 n + i, so that what a lane holds of a row is one run.
constexpr std::size_t stored_column(std::size_t s) { return s % 32 / 2 * 8 + s / 32 * 2 + s % 2; }
// Of the last block, from such a row: the columns of its query, then the rows of W_K transposed, which lead
// back to such a row.
Halves pack_last_queries(const DenseBlock& block, TileOrder order);
// The columns of the values, then W_O and MLP.
Halves pack_last_rest(const DenseBlock& block, std::size_t d_mlp, TileOrder order);

// The unembedding; columns are rounded up to 64, with a bias that no token has.
inline constexpr float kNoToken = -1e30f;
Halves pack_unembedding(const DenseModel& model, TileOrder order);

}  // namespace deeptail::cuda
