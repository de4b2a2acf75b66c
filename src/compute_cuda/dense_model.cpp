#include "compute_cuda/dense_model.h"

#include <algorithm>
#include <map>
#include <utility>

#include "compute_cuda/dense_block.h"

namespace deeptail::cuda {

DenseModel dense_model(const Transformer& model) {
  const ModelConfig& c = model.config();
  ModelWeights w = model.raw_weights();
  DenseModel out{.n_layers = c.n_layers,
                 .d_model = c.d_model,
                 .n_heads = c.n_heads,
                 .d_head = device_head_size(c.d_head),
                 .d_mlp = device_mlp_size(c.d_mlp),
                 .n_ctx = c.n_ctx,
                 .d_vocab = c.d_vocab,
                 .head_values = c.d_head,
                 .eps = c.eps,
                 .arch = c.arch,
                 .scale = {},
                 .w_e = std::move(w.w_e),
                 .w_pos = std::move(w.w_pos),
                 .blocks = {},
                 .ln_final_w = std::move(w.ln_final.w),
                 .ln_final_b = std::move(w.ln_final.b),
                 .w_u = std::move(w.w_u.w),
                 .b_u = std::move(w.w_u.b)};
  out.ln_final_b.resize(c.d_model, 0.0f);
  out.b_u.resize(c.d_vocab, 0.0f);
  if (c.arch.tied_head) out.w_u = transposed(out.w_e, c.d_vocab, c.d_model);
  for (std::size_t layer = 0; layer < c.n_layers; ++layer) {
    out.scale.push_back(c.attention_scale(layer));
    out.blocks.push_back(dense_block(c, std::exchange(w.blocks[layer], {}), layer + 1 == c.n_layers));
  }
  return out;
}

namespace {

// Adds a table's chances to those of out, a DenseInputs or a DenseBase.
template <class Dense>
DenseInputs::Table add_table(const TokenTable& table, Dense& out) {
  const DenseInputs::Table at{.first_entry = static_cast<std::uint32_t>(out.last_unit.size()),
                              .first_guide = static_cast<std::uint32_t>(out.guide.size()),
                              .guide_shift = static_cast<std::uint32_t>(table.guide_shift())};
  out.guide.insert(out.guide.end(), table.guide().begin(), table.guide().end());
  for (std::size_t i = 0; i < table.size(); ++i) out.last_unit.push_back(table.last_unit(i));
  return at;
}

std::uint32_t row_of(const Distribution& tables, const DenseInputs& inputs, std::size_t position,
                     TokenId token) {
  const std::vector<TokenId>& ids = tables.table(position).ids();
  const auto entry = std::lower_bound(ids.begin(), ids.end(), token) - ids.begin();
  return inputs.first_row[position] + static_cast<std::uint32_t>(entry);
}

DensePlant dense_plant(const Plant& plant, const Distribution& tables, const DenseInputs& inputs) {
  static_assert(kMostPlanted == Plant::kMost);
  DensePlant out;
  for (std::size_t i = 0; i < plant.tokens().size(); ++i) {
    const PlantedToken& t = plant.tokens()[i];
    out.position[i] = t.position;
    out.row[i] = row_of(tables, inputs, t.position, t.token);
  }
  return out;
}

}  // namespace

DenseBase dense_base(const Distribution& tables, const PlantList* plants, const DenseInputs& inputs) {
  DenseBase out;
  std::map<std::size_t, DenseInputs::Table> made;  // by the number of the table: some have no position
  for (const std::size_t number : tables.positions) {
    const auto [at, is_new] = made.try_emplace(number);
    if (is_new) at->second = add_table(tables.tables[number], out);
    out.tables.push_back(at->second);
  }
  for (const std::size_t position : free_positions(tables))
    out.free.push_back(static_cast<std::uint32_t>(position));
  if (plants == nullptr) return out;
  out.tables.push_back(add_table(plants->chances, out));
  out.free.push_back(static_cast<std::uint32_t>(tables.length()));
  for (const Plant& plant : plants->plants) out.plants.push_back(dense_plant(plant, tables, inputs));
  return out;
}

DenseInputs dense_inputs(const Distribution& dist) {
  DenseInputs out;
  std::vector<DenseInputs::Table> by_table;
  for (const TokenTable& table : dist.tables) {
    by_table.push_back(add_table(table, out));
    out.ids.insert(out.ids.end(), table.ids().begin(), table.ids().end());
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
