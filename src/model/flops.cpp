// What the algorithm costs, whatever an engine saves.
#include "deeptail/model.h"

namespace deeptail {

namespace {

double mlp_flops(const ModelConfig& c) {
  const double matrices = c.arch.mlp == Architecture::Mlp::kSwiGlu ? 3.0 : 2.0;
  return 2.0 * matrices * static_cast<double>(c.d_model) * static_cast<double>(c.d_mlp);
}

}  // namespace

double forward_flops(const ModelConfig& c, std::size_t length) {
  const double n = static_cast<double>(length), d = static_cast<double>(c.d_model);
  const double d_attn = static_cast<double>(c.d_attn()), d_kv = static_cast<double>(c.d_kv());
  const double projections = 2.0 * n * (2.0 * d * (d_attn + d_kv)) + n * mlp_flops(c);
  const double attention = 2.0 * n * (n + 1.0) * d_attn;  // scores and sums over the positions up to each one
  return static_cast<double>(c.n_layers) * (projections + attention) +
         2.0 * d * static_cast<double>(c.d_vocab);
}

double rescoring_flops(const ModelConfig& c, std::size_t length, std::size_t first_changed) {
  const double n = static_cast<double>(length), rows = n - static_cast<double>(first_changed);
  const double d = static_cast<double>(c.d_model), d_attn = static_cast<double>(c.d_attn());
  const double d_kv = static_cast<double>(c.d_kv()), mlp = mlp_flops(c);
  const double full_block = rows * (4.0 * d * (d_attn + d_kv) + mlp +
                                    2.0 * (n + static_cast<double>(first_changed) + 1.0) * d_attn);
  // The last block: keys and values of the changed rows (in a model of one layer that is one row, taken as
  // such), the query, attention, output and MLP of the last position.
  const double changed = c.n_layers == 1 && c.arch.keys_are_still() ? 1.0 : rows;
  const double last_block = changed * 4.0 * d * d_kv + 4.0 * d * d_attn + 4.0 * n * d_attn + mlp;
  return static_cast<double>(c.n_layers - 1) * full_block + last_block;
}

}  // namespace deeptail
