#include "estimators/token_gradients.h"

#include <algorithm>
#include <cmath>

#include "model/cpu/packed_weights.h"

namespace deeptail {

TokenGradients::TokenGradients(const Transformer& model, const Distribution& dist)
    : embed_(dist.tables.size()), prior_(dist.tables.size()), log_prior_(dist.tables.size()) {
  check_varies(dist);
  positions_ = free_positions(dist);
  for (const std::size_t position : positions_) tables_of_.push_back(dist.positions[position]);
  const std::size_t d = model.config().d_model;
  for (std::size_t t = 0; t < dist.tables.size(); ++t) {
    const TokenTable& table = dist.tables[t];
    if (table.size() < 2) continue;
    std::vector<float> columns(d * table.size()), row(d);  // [d_model, size]
    for (std::size_t i = 0; i < table.size(); ++i) {
      model.packed().embedding(table.ids()[i], row.data());
      for (std::size_t k = 0; k < d; ++k) columns[k * table.size() + i] = row[k];
      prior_[t].push_back(table.probability(i));
      log_prior_[t].push_back(static_cast<float>(std::log(prior_[t].back())));
    }
    embed_[t] = PackedMatrix(columns, d, table.size());
    largest_table_ = std::max(largest_table_, table.size());
  }
}

std::size_t place_of(const TokenTable& table, TokenId token) {
  return static_cast<std::size_t>(std::lower_bound(table.ids().begin(), table.ids().end(), token) -
                                  table.ids().begin());
}

}  // namespace deeptail
