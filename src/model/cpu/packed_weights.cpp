#include "model/cpu/packed_weights.h"

#include <algorithm>

#include "core/json.h"

namespace deeptail {

namespace {

AlignedVector<float> aligned(const std::vector<float>& values) { return {values.begin(), values.end()}; }

LayerNorm packed(const NormWeights& norm, float eps) { return {aligned(norm.w), aligned(norm.b), eps}; }

PackedMatrix packed(const Matrix& m) { return PackedMatrix(m.w, m.in, m.out, m.b); }

// Columns [first, first + n) of m: [in, n].
std::vector<float> columns_of(const Matrix& m, std::size_t first, std::size_t n) {
  std::vector<float> out(m.in * n);
  for (std::size_t i = 0; i < m.in; ++i) std::copy_n(m.w.data() + i * m.out + first, n, out.data() + i * n);
  return out;
}

// The last block answers for one position only, so keys and values are never formed: the query is carried
// through W_K, and the average of the inputs through W_V (last_block.cpp). The keys' bias adds the same to
// every score.
void pack_last(const BlockWeights& w, const ModelConfig& c, PackedBlock& out) {
  out.w_q = packed(w.w_q);
  for (std::size_t h = 0; h < c.n_heads; ++h) {
    const std::size_t first = h * c.d_head;
    out.w_k_t.push_back(PackedMatrix(columns_of(w.w_k, first, c.d_head), c.d_model, c.d_head).transposed());
    out.w_v.emplace_back(columns_of(w.w_v, first, c.d_head), c.d_model, c.d_head,
                         std::span(w.w_v.b).subspan(first, c.d_head));
  }
}

}  // namespace

PackedWeights pack_weights(const ModelConfig& c, const ModelWeights& weights) {
  PackedWeights out{.w_e = aligned(weights.w_e), .w_pos = aligned(weights.w_pos), .blocks = {}, .head = {}};
  for (const BlockWeights& w : weights.blocks) {
    PackedBlock block{.ln1 = packed(w.ln1, c.eps),
                      .ln2 = packed(w.ln2, c.eps),
                      .w_qkv = {},
                      .w_o = packed(w.w_o),
                      .w_in = packed(w.w_in),
                      .w_out = packed(w.w_out),
                      .w_q = {},
                      .w_k_t = {},
                      .w_v = {}};
    if (&w == &weights.blocks.back())
      pack_last(w, c, block);
    else
      block.w_qkv = packed(side_by_side({&w.w_q, &w.w_k, &w.w_v}));
    out.blocks.push_back(std::move(block));
  }
  out.head.ln_final = packed(weights.ln_final, c.eps);
  out.head.w_u = packed(weights.w_u);
  out.head.owner = fmt::format("model {}", printable(c.model_name));
  return out;
}

}  // namespace deeptail
