#include "model/cpu/packed_weights.h"

#include <algorithm>

#include "core/json.h"
#include "model/families/family.h"

namespace deeptail {

namespace {

AlignedVector<float> aligned(const std::vector<float>& values) { return {values.begin(), values.end()}; }

LayerNorm packed(const NormWeights& norm, const ModelConfig& c) {
  const bool centred = c.arch.norm == Architecture::Norm::kLayer;
  LayerNorm out{aligned(norm.w), aligned(norm.b), c.eps, centred};
  if (centred) out.bias.resize(norm.w.size(), 0.0f);
  return out;
}

PackedMatrix packed(const Matrix& m) { return PackedMatrix(m.w, m.in, m.out, m.b); }

// Columns [first, first + n) of m: [in, n].
std::vector<float> columns_of(const Matrix& m, std::size_t first, std::size_t n) {
  std::vector<float> out(m.in * n);
  for (std::size_t i = 0; i < m.in; ++i) std::copy_n(m.w.data() + i * m.out + first, n, out.data() + i * n);
  return out;
}

// The last block answers for one position only. Where keys are still, keys and values are never formed: the
// query is carried through W_K, and the average of the inputs through W_V (last_block.cpp). The keys' bias adds
// the same to every score.
void pack_last(const BlockWeights& w, const ModelConfig& c, PackedBlock& out) {
  out.w_q = packed(w.w_q);
  if (!c.arch.keys_are_still()) {
    out.w_kv = packed(side_by_side({&w.w_k, &w.w_v}));
    return;
  }
  for (std::size_t g = 0; g < c.n_kv_heads(); ++g) {
    const std::size_t first = g * c.d_head;
    out.w_k_t.push_back(PackedMatrix(columns_of(w.w_k, first, c.d_head), c.d_model, c.d_head).transposed());
    const std::span<const float> bias(w.w_v.b);
    out.w_v.emplace_back(columns_of(w.w_v, first, c.d_head), c.d_model, c.d_head,
                         bias.empty() ? bias : bias.subspan(first, c.d_head));
  }
}

PackedBlock pack_block(const BlockWeights& w, const ModelConfig& c, std::size_t layer) {
  const bool gated = c.arch.mlp == Architecture::Mlp::kSwiGlu;
  PackedBlock out{.ln1 = packed(w.ln1, c),
                  .ln2 = packed(w.ln2, c),
                  .scale = c.attention_scale(layer),
                  .w_o = packed(w.w_o),
                  .w_in = packed(gated ? side_by_side({&w.w_gate, &w.w_in}) : w.w_in),
                  .w_out = packed(w.w_out)};
  if (c.arch.qk_norm) {
    out.q_norm = {aligned(w.q_norm.w), {}, c.eps, /*centred=*/false};
    out.k_norm = {aligned(w.k_norm.w), {}, c.eps, /*centred=*/false};
  }
  if (layer + 1 == c.n_layers)
    pack_last(w, c, out);
  else
    out.w_qkv = packed(side_by_side({&w.w_q, &w.w_k, &w.w_v}));
  return out;
}

}  // namespace

void PackedWeights::embedding(TokenId token, float* out) const {
  const std::size_t d = head.d_model(), t = static_cast<std::size_t>(token);
  if (!w_e.empty())
    std::copy_n(w_e.data() + t * d, d, out);
  else
    for (std::size_t i = 0; i < d; ++i) out[i] = head.w_u.at(i, t);
}

PackedWeights pack_weights(const ModelConfig& c, TensorTaker& tensors, bool whole) {
  const Family& family = family_of(c);
  PackedWeights out;
  {
    const EndWeights ends = family.take_ends(c, tensors);
    out.w_pos = aligned(ends.w_pos);
    out.head.ln_final = packed(ends.ln_final, c);
    out.head.w_u = c.arch.tied_head ? PackedMatrix::of_transposed(ends.w_e, c.d_model, c.d_vocab, ends.w_u.b)
                                    : packed(ends.w_u);
    if (!c.arch.tied_head) out.w_e = aligned(ends.w_e);
  }
  out.head.owner = fmt::format("model {}", printable(c.model_name));
  for (std::size_t i = 0; i < c.n_layers; ++i)
    out.blocks.push_back(pack_block(family.take_block(c, tensors, i), c, i));
  if (whole) tensors.refuse_others(family.buffers);
  return out;
}

}  // namespace deeptail
