#include "compute_cuda/dense_model.h"

#include <algorithm>

#include "model/weights.h"

namespace deeptail::cuda {

namespace {

DenseBlock dense_block(BlockWeights b, bool last) {
  // The last block answers for one query, to whose scores the keys' bias adds the same: left out, as on the
  // CPU.
  if (last) std::fill(b.w_k.b.begin(), b.w_k.b.end(), 0.0f);
  DenseBlock out;
  Matrix qkv = side_by_side({&b.w_q, &b.w_k, &b.w_v});
  out.w_qkv = std::move(qkv.w), out.b_qkv = std::move(qkv.b);
  out.ln1_w = std::move(b.ln1.w), out.ln1_b = std::move(b.ln1.b);
  out.ln2_w = std::move(b.ln2.w), out.ln2_b = std::move(b.ln2.b);
  out.w_o = std::move(b.w_o.w), out.b_o = std::move(b.w_o.b);
  out.w_in = std::move(b.w_in.w), out.b_in = std::move(b.w_in.b);
  out.w_out = std::move(b.w_out.w), out.b_out = std::move(b.w_out.b);
  // Kernels know no weights without a bias.
  out.b_qkv.resize(qkv.out), out.b_o.resize(b.w_o.out), out.b_in.resize(b.w_in.out);
  out.b_out.resize(b.w_out.out);
  return out;
}

}  // namespace

DenseModel dense_model(const Transformer& model) {
  const ModelConfig& c = model.config();
  ModelWeights w = model.raw_weights();
  DenseModel out{.n_layers = c.n_layers,
                 .d_model = c.d_model,
                 .n_heads = c.n_heads,
                 .d_head = c.d_head,
                 .d_mlp = c.d_mlp,
                 .n_ctx = c.n_ctx,
                 .d_vocab = c.d_vocab,
                 .eps = c.eps,
                 .arch = c.arch,
                 .w_e = std::move(w.w_e),
                 .w_pos = std::move(w.w_pos),
                 .blocks = {},
                 .ln_final_w = std::move(w.ln_final.w),
                 .ln_final_b = std::move(w.ln_final.b),
                 .w_u = std::move(w.w_u.w),
                 .b_u = std::move(w.w_u.b)};
  out.b_u.resize(c.d_vocab, 0.0f);
  for (BlockWeights& b : w.blocks) {
    const bool last = &b == &w.blocks.back();
    out.blocks.push_back(dense_block(std::move(b), last));
  }
  return out;
}

DenseInputs dense_inputs(const Distribution& dist) {
  DenseInputs out;
  std::vector<DenseInputs::Table> by_table;
  for (const TokenTable& table : dist.tables) {
    by_table.push_back({.first_entry = static_cast<std::uint32_t>(out.ids.size()),
                        .first_guide = static_cast<std::uint32_t>(out.guide.size()),
                        .guide_shift = static_cast<std::uint32_t>(table.guide_shift())});
    out.ids.insert(out.ids.end(), table.ids().begin(), table.ids().end());
    out.guide.insert(out.guide.end(), table.guide().begin(), table.guide().end());
    for (std::size_t i = 0; i < table.size(); ++i) out.last_unit.push_back(table.last_unit(i));
  }
  out.first_row.push_back(0);
  for (std::size_t position = 0; position < dist.length(); ++position) {
    const TokenTable& table = dist.table(position);
    out.tables.push_back(by_table[dist.positions[position]]);
    for (const TokenId id : table.ids()) {
      out.row_token.push_back(static_cast<std::uint32_t>(id));
      out.row_position.push_back(static_cast<std::uint32_t>(position));
    }
    out.first_row.push_back(static_cast<std::uint32_t>(out.row_token.size()));
  }
  return out;
}

}  // namespace deeptail::cuda
