// What the algorithm costs, whatever an engine saves.
#include "deeptail/model.h"

namespace deeptail {

double forward_flops(const ModelConfig& c, std::size_t length) {
  const double n = static_cast<double>(length), d = static_cast<double>(c.d_model);
  const double d_attn = static_cast<double>(c.d_attn()), d_mlp = static_cast<double>(c.d_mlp);
  const double projections = 2.0 * n * (4.0 * d * d_attn + 2.0 * d * d_mlp);
  const double attention = 2.0 * n * (n + 1.0) * d_attn;  // scores and sums over the positions up to each one
  return static_cast<double>(c.n_layers) * (projections + attention) +
         2.0 * d * static_cast<double>(c.d_vocab);
}

double rescoring_flops(const ModelConfig& c, std::size_t length, std::size_t first_changed) {
  const double n = static_cast<double>(length), rows = n - static_cast<double>(first_changed);
  const double d = static_cast<double>(c.d_model), d_attn = static_cast<double>(c.d_attn());
  const double mlp = 4.0 * d * static_cast<double>(c.d_mlp);
  const double full_block =
      rows * (8.0 * d * d_attn + mlp + 2.0 * (n + static_cast<double>(first_changed) + 1.0) * d_attn);
  // The last block: keys and values of the changed rows (in a model of one layer that is one row, taken as
  // such), the query, attention, output and MLP of the last position.
  const double changed = c.n_layers == 1 ? 1.0 : rows;
  const double last_block = changed * 4.0 * d * d_attn + 4.0 * d * d_attn + 4.0 * n * d_attn + mlp;
  return static_cast<double>(c.n_layers - 1) * full_block + last_block;
}

}  // namespace deeptail
