#include "compute_cuda/tiles/pack.h"

#include <cuda_fp16.h>

#include <algorithm>

namespace deeptail::cuda {

namespace {

// A matrix [k, n] or columns of one; columns beyond n_valid are zero.
struct MatrixView {
  const float* data;
  std::size_t stride, n_valid;
  float at(std::size_t row, std::size_t column) const {
    return column < n_valid ? data[row * stride + column] : 0.0f;
  }
};

std::uint16_t half_bits(float value) { return __half_as_ushort(__float2half_rn(value)); }

// The B tile of rows [16 k, 16 k + 16) and columns [8 n, 8 n + 8), what one lane holds of it.
void append_lane(const MatrixView& w, std::size_t k, std::size_t n, std::size_t lane, Halves& out) {
  for (std::size_t row : {0, 1, 8, 9})
    out.push_back(half_bits(w.at(16 * k + row + 2 * (lane % 4), 8 * n + lane / 4)));
}

void append_core_matrices(const MatrixView& w, std::size_t first_k, std::size_t n_k, std::size_t first_n,
                          std::size_t n_n, Halves& out) {
  for (std::size_t k8 = 0; k8 < n_k; k8 += 8)
    for (std::size_t n = 0; n < n_n; ++n)
      for (std::size_t k = 0; k < 8; ++k) out.push_back(half_bits(w.at(first_k + k8 + k, first_n + n)));
}

// Whole columns [first, first + count) of a matrix with 128 rows.
void append_columns(const MatrixView& w, std::size_t first, std::size_t count, TileOrder order, Halves& out) {
  if (order == TileOrder::kWgmma) return append_core_matrices(w, 0, 128, first, count, out);
  for (std::size_t n = first / 8; n < (first + count) / 8; ++n)
    for (std::size_t k = 0; k < 8; k += 2)
      for (std::size_t lane = 0; lane < 32; ++lane)
        for (std::size_t i : {0, 1}) append_lane(w, k + i, n, lane, out);
}
// Whole rows [first, first + count) of a matrix with 128 columns.
void append_rows(const MatrixView& w, std::size_t first, std::size_t count, TileOrder order, Halves& out) {
  if (order == TileOrder::kWgmma) return append_core_matrices(w, first, count, 0, 128, out);
  for (std::size_t k = first / 16; k < (first + count) / 16; ++k)
    for (std::size_t n = 0; n < 16; n += 2)
      for (std::size_t lane = 0; lane < 32; ++lane)
        for (std::size_t i : {0, 1}) append_lane(w, k, n + i, lane, out);
}

// The vectors at the end of a chunk: 64 biases and two vectors of 128, as fp32, zeros where there is none.
void append_vectors(const float* biases, std::size_t n_biases, const std::vector<float>* first,
                    const std::vector<float>* second, Halves& out) {
  std::vector<float> values(64 + 256, 0.0f);
  std::copy_n(biases, n_biases, values.begin());
  if (first != nullptr) std::copy(first->begin(), first->end(), values.begin() + 64);
  if (second != nullptr) std::copy(second->begin(), second->end(), values.begin() + 192);
  const auto* raw = reinterpret_cast<const std::uint16_t*>(values.data());
  out.insert(out.end(), raw, raw + 2 * values.size());
}

// Keys, values, queries; the first chunk brings ln1.
void append_projections(const DenseBlock& block, TileOrder order, Halves& out) {
  for (const std::size_t first : {128, 192, 256, 320, 0, 64}) {
    append_columns({block.w_qkv.data(), 384, 384}, first, 64, order, out);
    append_vectors(block.b_qkv.data() + first, 64, first == 128 ? &block.ln1_w : nullptr,
                   first == 128 ? &block.ln1_b : nullptr, out);
  }
}

// W_O, the first chunk with b_O; then the MLP, columns of W_in and rows of W_out in turn, its first chunk
// with ln2, the second with b_out.
void append_rest(const DenseBlock& block, std::size_t d_mlp, TileOrder order, Halves& out) {
  for (const std::size_t first : {0, 64}) {
    append_rows({block.w_o.data(), 128, 128}, first, 64, order, out);
    append_vectors(nullptr, 0, first == 0 ? &block.b_o : nullptr, nullptr, out);
  }
  for (std::size_t first = 0; first < d_mlp; first += 64) {
    append_columns({block.w_in.data(), d_mlp, d_mlp}, first, 64, order, out);
    append_vectors(block.b_in.data() + first, 64, first == 0 ? &block.ln2_w : nullptr,
                   first == 0 ? &block.ln2_b : nullptr, out);
    append_rows({block.w_out.data(), 128, 128}, first, 64, order, out);
    append_vectors(nullptr, 0, first == 0 ? &block.b_out : nullptr, nullptr, out);
  }
}

// A projection with its rows in the order of stored columns: [128, 128].
std::vector<float> from_stored(const DenseBlock& block, std::size_t first_column) {
  std::vector<float> w(128 * 128);
  for (std::size_t s = 0; s < 128; ++s)
    for (std::size_t n = 0; n < 128; ++n)
      w[s * 128 + n] = block.w_qkv[stored_column(s) * 384 + first_column + n];
  return w;
}
std::vector<float> transposed(const std::vector<float>& w) {
  std::vector<float> t(w.size());
  for (std::size_t i = 0; i < 128; ++i)
    for (std::size_t j = 0; j < 128; ++j) t[j * 128 + i] = w[i * 128 + j];
  return t;
}

}  // namespace

Halves pack_blocks(const DenseModel& model, TileOrder order) {
  Halves out;
  for (std::size_t layer = 0; layer + 1 < model.n_layers; ++layer) {
    if (layer > 0) append_projections(model.blocks[layer], order, out);
    append_rest(model.blocks[layer], model.d_mlp, order, out);
  }
  return out;
}

Halves pack_rest(const DenseBlock& block, std::size_t d_mlp, TileOrder order) {
  Halves out;
  append_rest(block, d_mlp, order, out);
  return out;
}

Halves pack_last_queries(const DenseBlock& block, TileOrder order) {
  const std::vector<float> queries = from_stored(block, 0), back = transposed(from_stored(block, 128));
  Halves out;
  for (const std::size_t first : {0, 64}) {
    append_columns({queries.data(), 128, 128}, first, 64, order, out);
    append_vectors(block.b_qkv.data() + first, 64, nullptr, nullptr, out);
  }
  for (const std::size_t first : {0, 64}) {
    append_rows({back.data(), 128, 128}, first, 64, order, out);
    append_vectors(nullptr, 0, nullptr, nullptr, out);
  }
  return out;
}

Halves pack_last_rest(const DenseBlock& block, std::size_t d_mlp, TileOrder order) {
  const std::vector<float> values = from_stored(block, 256);
  Halves out;
  for (const std::size_t first : {0, 64}) {
    append_columns({values.data(), 128, 128}, first, 64, order, out);
    append_vectors(block.b_qkv.data() + 256 + first, 64, nullptr, nullptr, out);
  }
  append_rest(block, d_mlp, order, out);
  return out;
}

bool rest_is_exact(const DenseBlock& block) {
  const auto exact = [](const std::vector<float>& w) {
    return std::all_of(w.begin(), w.end(), [](float v) { return __half2float(__float2half_rn(v)) == v; });
  };
  return exact(block.w_o) && exact(block.w_in) && exact(block.w_out);
}

Halves pack_unembedding(const DenseModel& model, TileOrder order) {
  const std::size_t n_columns = (model.d_vocab + 63) / 64 * 64;  // of a chunk
  std::vector<float> biases(n_columns, kNoToken);
  std::copy(model.b_u.begin(), model.b_u.end(), biases.begin());
  Halves out;
  for (std::size_t first = 0; first < n_columns; first += 64) {
    append_columns({model.w_u.data(), model.d_vocab, model.d_vocab}, first, 64, order, out);
    append_vectors(biases.data() + first, 64, nullptr, nullptr, out);
  }
  return out;
}

}  // namespace deeptail::cuda
