#include "compute_cuda/dense_model.h"

#include <algorithm>

#include "model/weights.h"

namespace deeptail::cuda {

namespace {

std::vector<float> vector_of(const AlignedVector<float>& values) { return {values.begin(), values.end()}; }

std::vector<float> rows_of(const PackedMatrix& w) {
  std::vector<float> out;
  out.reserve(w.k() * w.n());
  for (std::size_t i = 0; i < w.k(); ++i)
    for (std::size_t j = 0; j < w.n(); ++j) out.push_back(w.at(i, j));
  return out;
}
std::vector<float> bias_of(const PackedMatrix& w) { return {w.bias(), w.bias() + w.n()}; }

// The last block keeps its projections apart, and no bias of the keys: it adds the same to every score of a
// query.
void join_projections(const BlockWeights& b, const DenseModel& m, DenseBlock& out) {
  const std::size_t d = m.d_model, d_attn = m.n_heads * m.d_head, width = 3 * d_attn;
  out.w_qkv.assign(d * width, 0.0f);
  out.b_qkv.assign(width, 0.0f);
  std::copy_n(b.w_q.bias(), d_attn, out.b_qkv.begin());
  for (std::size_t h = 0; h < m.n_heads; ++h)
    for (std::size_t j = 0; j < m.d_head; ++j) {
      const std::size_t column = h * m.d_head + j;
      out.b_qkv[2 * d_attn + column] = b.w_v[h].bias()[j];
      for (std::size_t i = 0; i < d; ++i) {
        out.w_qkv[i * width + column] = b.w_q.at(i, column);
        out.w_qkv[i * width + d_attn + column] = b.w_k_t[h].at(j, i);
        out.w_qkv[i * width + 2 * d_attn + column] = b.w_v[h].at(i, j);
      }
    }
}

DenseBlock dense_block(const BlockWeights& b, const DenseModel& m) {
  DenseBlock out{.ln1_w = vector_of(b.ln1.weight),
                 .ln1_b = vector_of(b.ln1.bias),
                 .ln2_w = vector_of(b.ln2.weight),
                 .ln2_b = vector_of(b.ln2.bias),
                 .w_qkv = {},
                 .b_qkv = {},
                 .w_o = rows_of(b.w_o),
                 .b_o = bias_of(b.w_o),
                 .w_in = rows_of(b.w_in),
                 .b_in = bias_of(b.w_in),
                 .w_out = rows_of(b.w_out),
                 .b_out = bias_of(b.w_out)};
  if (b.w_v.empty()) {
    out.w_qkv = rows_of(b.w_qkv);
    out.b_qkv = bias_of(b.w_qkv);
  } else {
    join_projections(b, m, out);
  }
  return out;
}

}  // namespace

DenseModel dense_model(const Transformer& model) {
  const ModelConfig& c = model.config();
  const Weights& w = model.weights();
  DenseModel out{.n_layers = c.n_layers,
                 .d_model = c.d_model,
                 .n_heads = c.n_heads,
                 .d_head = c.d_head,
                 .d_mlp = c.d_mlp,
                 .n_ctx = c.n_ctx,
                 .d_vocab = c.d_vocab,
                 .eps = c.eps,
                 .w_e = vector_of(w.w_e),
                 .w_pos = vector_of(w.w_pos),
                 .blocks = {},
                 .ln_final_w = vector_of(w.head.ln_final->weight),
                 .ln_final_b = vector_of(w.head.ln_final->bias),
                 .w_u = rows_of(w.head.w_u),
                 .b_u = bias_of(w.head.w_u)};
  for (const BlockWeights& b : w.blocks) out.blocks.push_back(dense_block(b, out));
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
