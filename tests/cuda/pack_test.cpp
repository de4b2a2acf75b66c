// The order of weights in the streams, checked against its definition. Needs no GPU.
#include "compute_cuda/tiles/pack.h"

#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <cstring>

namespace deeptail::cuda {
namespace {

constexpr std::size_t kTileHalves = 8192, kChunkHalves = kTileHalves + 2 * (64 + 256);
constexpr std::size_t kVocab = 100, kMlp = 128;

// Every weight has a value of its own that fp16 holds.
std::vector<float> numbered(std::size_t n, float offset) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i % 1009) + offset;
  return values;
}

DenseModel two_layers() {
  DenseModel m;
  m.n_layers = 2, m.d_model = 128, m.n_heads = 4, m.d_head = 32;
  m.d_mlp = kMlp, m.d_vocab = kVocab;
  for (float i : {0.0f, 0.5f})
    m.blocks.push_back({.ln1_w = numbered(128, 1 + i),
                        .ln1_b = numbered(128, 2 + i),
                        .ln2_w = numbered(128, 3 + i),
                        .ln2_b = numbered(128, 4 + i),
                        .w_qkv = numbered(128 * 384, i),
                        .b_qkv = numbered(384, 5 + i),
                        .w_o = numbered(128 * 128, i),
                        .b_o = numbered(128, 6 + i),
                        .w_in = numbered(128 * kMlp, i),
                        .b_in = numbered(kMlp, 7 + i),
                        .w_out = numbered(kMlp * 128, i),
                        .b_out = numbered(128, 8 + i)});
  m.w_u = numbered(128 * kVocab, 0);
  m.b_u = numbered(kVocab, 9);
  return m;
}

float tile_value(const Halves& stream, std::size_t chunk, std::size_t at) {
  return __half2float(__ushort_as_half(stream[chunk * kChunkHalves + at]));
}
float vector_value(const Halves& stream, std::size_t chunk, std::size_t at) {
  float value = 0.0f;
  std::memcpy(&value, &stream[chunk * kChunkHalves + kTileHalves + 2 * at], sizeof(value));
  return value;
}
// Where element (k, n) of a tile block with n_columns columns lies for wgmma.
std::size_t core_place(std::size_t k, std::size_t n, std::size_t n_columns) {
  return k / 8 * 8 * n_columns + n * 8 + k % 8;
}
// Where it lies for mma.sync when whole columns of 128 rows are used.
std::size_t lane_place(std::size_t k, std::size_t n) {
  const std::size_t lane = n % 8 * 4 + k % 8 / 2, within = k % 16 / 8 * 2 + k % 2;
  return ((n / 8 * 4 + k / 32) * 32 + lane) * 8 + k % 32 / 16 * 4 + within;
}

TEST(Pack, UnembeddingColumns) {
  const DenseModel m = two_layers();
  const Halves core = pack_unembedding(m, TileOrder::kWgmma), lanes = pack_unembedding(m, TileOrder::kMma);
  ASSERT_EQ(core.size(), 2 * kChunkHalves);
  ASSERT_EQ(lanes.size(), core.size());
  for (std::size_t k = 0; k < 128; ++k)
    for (std::size_t n = 0; n < 128; ++n) {
      const float expected = n < kVocab ? m.w_u[k * kVocab + n] : 0.0f;
      EXPECT_EQ(tile_value(core, n / 64, core_place(k, n % 64, 64)), expected) << k << " " << n;
      EXPECT_EQ(tile_value(lanes, n / 64, lane_place(k, n % 64)), expected) << k << " " << n;
    }
  EXPECT_EQ(vector_value(core, 1, 10), m.b_u[74]);
  EXPECT_EQ(vector_value(core, 1, 40), kNoToken);
}

TEST(Pack, MlpChunksOfColumnsAndRowsInTurn) {
  const DenseModel m = two_layers();
  const DenseBlock& b = m.blocks[1];
  const Halves s = pack_rest(m.blocks.back(), m.d_mlp, TileOrder::kWgmma);
  ASSERT_EQ(s.size(), (2 + kMlp / 32) * kChunkHalves);
  for (std::size_t k = 0; k < 128; ++k) {
    for (std::size_t n = 0; n < 128; ++n)
      EXPECT_EQ(tile_value(s, k / 64, core_place(k % 64, n, 128)), b.w_o[k * 128 + n]);
    for (std::size_t unit = 0; unit < kMlp; ++unit) {
      const std::size_t columns = 2 + unit / 64 * 2;
      EXPECT_EQ(tile_value(s, columns, core_place(k, unit % 64, 64)), b.w_in[k * kMlp + unit]);
      EXPECT_EQ(tile_value(s, columns + 1, core_place(unit % 64, k, 128)), b.w_out[unit * 128 + k]);
    }
    EXPECT_EQ(vector_value(s, 0, 64 + k), b.b_o[k]);
    EXPECT_EQ(vector_value(s, 2, 64 + k), b.ln2_w[k]);
    EXPECT_EQ(vector_value(s, 2, 192 + k), b.ln2_b[k]);
    EXPECT_EQ(vector_value(s, 3, 64 + k), b.b_out[k]);
  }
  EXPECT_EQ(vector_value(s, 4, 5), b.b_in[69]);
}

// Keys, values, queries of every block but the first, then W_O and MLP; the last block has streams of its
// own.
TEST(Pack, BlocksStream) {
  DenseModel m = two_layers();
  const std::size_t rest = 2 + kMlp / 32;
  EXPECT_EQ(pack_blocks(m, TileOrder::kWgmma).size(), rest * kChunkHalves);
  m.blocks.push_back(m.blocks.front());
  m.n_layers = 3;
  const Halves s = pack_blocks(m, TileOrder::kWgmma);
  ASSERT_EQ(s.size(), (rest + 6 + rest) * kChunkHalves);
  EXPECT_EQ(vector_value(s, 0, 64), m.blocks[0].b_o[0]);
  EXPECT_EQ(vector_value(s, rest, 64 + 3), m.blocks[1].ln1_w[3]);
  EXPECT_EQ(vector_value(s, rest + 6, 64), m.blocks[1].b_o[0]);
  for (std::size_t k = 0; k < 128; ++k)
    for (std::size_t n = 0; n < 384; ++n) {
      const std::size_t chunk = rest + (n < 128 ? 4 + n / 64 : n / 64 - 2);
      EXPECT_EQ(tile_value(s, chunk, core_place(k, n % 64, 64)), m.blocks[1].w_qkv[k * 384 + n]);
    }
}

// Column 8 n + 2 t + i of a row lies at 32 t + 2 n + i.
TEST(Pack, StoredColumnsAreAPermutation) {
  for (std::size_t n = 0; n < 16; ++n)
    for (std::size_t t = 0; t < 4; ++t)
      for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(stored_column(32 * t + 2 * n + i), 8 * n + 2 * t + i);
}

TEST(Pack, LastBlockTakesAndGivesStoredColumns) {
  const DenseModel m = two_layers();
  const DenseBlock& b = m.blocks[1];
  const Halves queries = pack_last_queries(b, TileOrder::kWgmma);
  const Halves rest = pack_last_rest(b, kMlp, TileOrder::kWgmma);
  ASSERT_EQ(queries.size(), 4 * kChunkHalves);
  ASSERT_EQ(rest.size(), (4 + kMlp / 32) * kChunkHalves);
  for (std::size_t s = 0; s < 128; ++s)
    for (std::size_t n = 0; n < 128; ++n) {
      const float* row = &b.w_qkv[stored_column(s) * 384];
      EXPECT_EQ(tile_value(queries, n / 64, core_place(s, n % 64, 64)), row[n]);
      EXPECT_EQ(tile_value(queries, 2 + n / 64, core_place(n % 64, s, 128)), row[128 + n]);
      EXPECT_EQ(tile_value(rest, n / 64, core_place(s, n % 64, 64)), row[256 + n]);
      EXPECT_EQ(tile_value(rest, 2 + s / 64, core_place(s % 64, n, 128)), b.w_o[s * 128 + n]);
    }
  EXPECT_EQ(vector_value(queries, 1, 3), b.b_qkv[67]);
  EXPECT_EQ(vector_value(rest, 1, 3), b.b_qkv[256 + 67]);
  EXPECT_EQ(vector_value(rest, 2, 64 + 5), b.b_o[5]);
  EXPECT_EQ(vector_value(rest, 4, 64 + 5), b.ln2_w[5]);
}

}  // namespace
}  // namespace deeptail::cuda
