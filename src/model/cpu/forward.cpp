// The forward pass of a batch, and the first layer's table.
#include <algorithm>
#include <optional>
#include <stdexcept>

#include "model/cpu/pass.h"

namespace deeptail {

void check_tokens(const ModelConfig& config, TokenBatch batch) {
  const auto check_length = [&](std::size_t length) {
    if (length == 0 || length > config.n_ctx)
      throw InputError("token sequence of length {}: expected 1 to n_ctx = {}", length, config.n_ctx);
  };
  check_length(batch.length);
  if (!batch.lengths.empty() && batch.lengths.size() != batch.size())
    throw std::invalid_argument("TokenBatch: as many lengths as sequences");
  for (std::size_t i = 0; i < batch.size(); ++i) {
    check_length(batch.length_of(i));
    if (batch.length_of(i) > batch.length) throw std::invalid_argument("TokenBatch: a length beyond its row");
    for (std::size_t j = 0; j < batch.length_of(i); ++j)
      if (const TokenId id = batch.row(i)[j]; id < 0 || static_cast<std::size_t>(id) >= config.d_vocab)
        throw InputError("token id {} at position {}: expected 0 to d_vocab - 1 = {}", id, j,
                         config.d_vocab - 1);
  }
}

namespace {

// How much all sequences have in common, short of the last position of each.
std::size_t common_prefix(TokenBatch batch) {
  std::size_t n = batch.length_of(0) - 1;
  for (std::size_t i = 1; i < batch.size(); ++i) {
    n = std::min(n, batch.length_of(i) - 1);
    n = static_cast<std::size_t>(std::mismatch(batch.row(0), batch.row(0) + n, batch.row(i)).first -
                                 batch.row(0));
  }
  return n;
}

}  // namespace

void final_residuals(const Transformer& model, TokenBatch batch, ThreadPool& pool, Rows out,
                     const FirstLayerTable* table) {
  check_tokens(model.config(), batch);
  SlotLayout layout(model.config(), batch.length, /*keep_keys=*/false);
  std::optional<SharedPrefix> prefix;
  if (batch.size() > 1 && !layout.rows_stand_alone())
    if (const std::size_t n = common_prefix(batch); n > 0) {
      prefix = compute_prefix(model, {batch.row(0), n});
      layout = SlotLayout(model.config(), batch.length, /*keep_keys=*/false, n);
    }
  const std::size_t group = group_size(model.config(), layout);
  std::vector<std::unique_ptr<Pass>> passes(pool.size());
  pool.for_each_block((batch.size() + group - 1) / group, [&](std::size_t block, std::size_t worker) {
    if (!passes[worker]) passes[worker] = std::make_unique<Pass>(model, layout, group);
    const std::size_t first = block * group, n = std::min(group, batch.size() - first);
    std::vector<Segment> segments(n);
    for (std::size_t i = 0; i < n; ++i)
      segments[i] = {.tokens = batch.row(first + i),
                     .length = batch.length_of(first + i),
                     .start = layout.first(),
                     .prefix = prefix ? &*prefix : nullptr};
    passes[worker]->run(segments, table, out.from(first));
  });
}

FirstLayerTable::FirstLayerTable(const Transformer& model, std::span<const std::vector<TokenId>> support,
                                 ThreadPool& pool)
    : d_vocab_(model.config().d_vocab),
      row_width_(row_width(model.config())),
      by_position_(model.config().arch.positions == Architecture::Positions::kLearned),
      index_((by_position_ ? support.size() : 1) * d_vocab_, -1) {
  if (row_width_ == 0) return;
  struct Pair {
    std::size_t position;
    TokenId token;
  };
  std::vector<Pair> pairs;
  for (std::size_t position = 0; position < support.size(); ++position)
    for (const TokenId token : support[position]) {
      check_tokens(model.config(), {{&token, 1}, 1});
      std::int32_t& row = index_[place(position, token)];
      if (row >= 0) continue;
      row = static_cast<std::int32_t>(pairs.size());
      pairs.push_back({position, token});
    }
  rows_.resize(pairs.size() * row_width_);
  statistics_.resize(pairs.size() * 2);

  const std::size_t d = model.config().d_model, block_rows = 96;
  const PackedBlock& block = model.packed().blocks.front();
  pool.for_each_block((pairs.size() + block_rows - 1) / block_rows, [&](std::size_t b, std::size_t) {
    const std::size_t first = b * block_rows, n = std::min(block_rows, pairs.size() - first);
    AlignedVector<float> x(n * d), normed(n * d);
    for (std::size_t i = 0; i < n; ++i)
      embed_token(model, pairs[first + i].token, pairs[first + i].position, x.data() + i * d);
    const Rows out{rows_.data() + first * row_width_, row_width_};
    const bool single = model.config().n_layers == 1;
    layernorm(n, {x.data(), d}, block.ln1, single ? out : Rows{normed.data(), d},
              statistics_.data() + 2 * first);
    if (!single) gemm(n, {normed.data(), d}, block.w_qkv, out);
  });
}

// A one-layer model whose keys turn takes no rows from here: it would have to keep queries and keys apart.
std::size_t FirstLayerTable::row_width(const ModelConfig& c) {
  if (c.n_layers > 1) return c.d_attn() + 2 * c.d_kv();
  return c.arch.keys_are_still() ? c.d_model : 0;
}

std::size_t FirstLayerTable::bytes_of(const ModelConfig& config,
                                      std::span<const std::vector<TokenId>> support) {
  std::size_t rows = 0;
  for (const std::vector<TokenId>& tokens : support) rows += tokens.size();
  if (config.arch.positions == Architecture::Positions::kRotary) rows = std::min(rows, config.d_vocab);
  return rows * row_width(config) * sizeof(float);
}

std::size_t FirstLayerTable::place(std::size_t position, TokenId token) const {
  return (by_position_ ? position * d_vocab_ : 0) + static_cast<std::size_t>(token);
}

std::int32_t FirstLayerTable::index(std::size_t position, TokenId token) const {
  const std::size_t at = place(position, token);
  return at < index_.size() ? index_[at] : -1;
}

const float* FirstLayerTable::row(std::size_t position, TokenId token) const {
  const std::int32_t i = index(position, token);
  return i < 0 ? nullptr : rows_.data() + static_cast<std::size_t>(i) * row_width_;
}

const float* FirstLayerTable::statistics(std::size_t position, TokenId token) const {
  const std::int32_t i = index(position, token);
  return i < 0 ? nullptr : statistics_.data() + static_cast<std::size_t>(i) * 2;
}

}  // namespace deeptail
