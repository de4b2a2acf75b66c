#include "model/cpu/pass.h"

#include <algorithm>

namespace deeptail {

namespace {
// Rows of the full blocks that are worked on together: residuals, queries, keys and values stay in L2.
constexpr std::size_t kTrunkRows = 192;
}  // namespace

// Fewer where slots are so large that a group of them would be a burden on memory.
std::size_t group_size(const ModelConfig& config, const SlotLayout& layout) {
  constexpr std::size_t kMostFloats = std::size_t{32} << 20;
  return std::clamp<std::size_t>(kMostFloats / layout.size(), 1, config.n_layers == 1 ? 96 : 48);
}

SharedPrefix compute_prefix(const Transformer& model, std::span<const TokenId> tokens) {
  SharedPrefix out{{tokens.begin(), tokens.end()},
                   SlotLayout(model.config(), tokens.size(), /*keep_keys=*/true)};
  out.slot.resize(out.layout.size());
  AlignedVector<float> resid(model.config().d_model);
  Segment segment{.tokens = out.tokens.data(), .length = tokens.size(), .fresh = out.slot.data()};
  Pass(model, out.layout, 1).run({&segment, 1}, nullptr, {resid.data(), resid.size()});
  return out;
}

void embed_token(const Transformer& model, TokenId token, std::size_t position, float* out) {
  const PackedWeights& w = model.packed();
  w.embedding(token, out);
  if (w.w_pos.empty()) return;
  const std::size_t d = model.config().d_model;
  const float* p = w.w_pos.data() + position * d;
  for (std::size_t i = 0; i < d; ++i) out[i] += p[i];
}

Pass::Pass(const Transformer& model, const SlotLayout& layout, std::size_t group)
    : model_(model),
      layout_(layout),
      max_rows_(kTrunkRows + layout.length()),
      last_(model.config(), group, layout.length()),
      fresh_(group * layout.size()),
      last_rows_(group * layout.length()),
      lengths_(group) {
  if (layout.rows_stand_alone()) return;
  const ModelConfig& c = model.config();
  if (layout.n_full_layers() > 0) block_.emplace(c, max_rows_, layout.length());
  x_.resize(max_rows_ * c.d_model);
  if (c.arch.keys_are_still()) return;
  y_.resize(max_rows_ * c.d_model);
  kv_.resize(max_rows_ * 2 * c.d_kv());
}

void Pass::embed(const Segment& s) {
  const std::size_t d = model_.config().d_model;
  for (std::size_t i = 0; i < s.n_rows(); ++i)
    embed_token(model_, s.tokens[s.start + i], s.start + i, x_.data() + (s.first_row + i) * d);
}

void Pass::full_blocks(std::span<Segment> segments, const FirstLayerTable* table) {
  const std::size_t d = model_.config().d_model;
  const auto& blocks = model_.packed().blocks;
  for (Segment& s : segments) embed(s);
  const Rows x{x_.data(), d};
  for (std::size_t layer = 0; layer < layout_.n_full_layers(); ++layer)
    block_->forward(blocks[layer], layer, layout_, segments, x, table);
  keep_last_rows(segments);
  for (const Segment& s : segments)
    std::copy_n(x.row(s.first_row + s.n_rows() - 1), d, layout_.last_residual(s.fresh));
}

void Pass::keep_last_rows(std::span<const Segment> segments) {
  const PackedBlock& w = model_.packed().blocks.back();
  const std::size_t d = model_.config().d_model, width = layout_.last_width();
  const ConstRows x{x_.data(), d};
  if (kv_.empty()) {
    for (const Segment& s : segments)
      layernorm(s.n_rows(), x.from(s.first_row), w.ln1, {layout_.last_input(s.fresh, s.start), d});
    return;
  }
  const std::size_t m = segments.back().first_row + segments.back().n_rows();
  layernorm(m, x, w.ln1, {y_.data(), d});
  last_.project(w, m, {y_.data(), d}, {kv_.data(), width});
  for (const Segment& s : segments) {
    float* to = layout_.last_input(s.fresh, s.start);
    std::copy_n(kv_.data() + s.first_row * width, s.n_rows() * width, to);
    last_.turn(w, s.n_rows(), s.start, {to, width});
  }
}

const float* Pass::single_layer_row(const Segment& s, std::size_t position, const FirstLayerTable* table) {
  if (position < s.start || s.unchanged(position)) return layout_.last_input(s.cache, position);
  float* fresh = layout_.last_input(s.fresh, position);
  const std::size_t d = model_.config().d_model;
  if (table != nullptr)
    if (const float* known = table->row(position, s.tokens[position]); known != nullptr) return known;
  float* x = layout_.last_residual(s.fresh);  // scratch until the caller fills it
  embed_token(model_, s.tokens[position], position, x);
  layernorm(1, {x, d}, model_.packed().blocks.back().ln1, {fresh, d});
  return fresh;
}

void Pass::run(std::span<Segment> segments, const FirstLayerTable* table, Rows out) {
  const std::size_t n = layout_.length(), d = model_.config().d_model;
  for (std::size_t i = 0; i < segments.size(); ++i)
    if (segments[i].fresh == nullptr) segments[i].fresh = fresh_.data() + i * layout_.size();

  const bool alone = layout_.rows_stand_alone();
  for (std::size_t first = 0; !alone && first < segments.size();) {
    std::size_t rows = 0, end = first;
    for (; end < segments.size() && (end == first || rows + segments[end].n_rows() <= max_rows_); ++end) {
      segments[end].first_row = rows;
      rows += segments[end].n_rows();
    }
    full_blocks(segments.subspan(first, end - first), table);
    first = end;
  }
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Segment& s = segments[i];
    const float** rows = last_rows_.data() + i * n;
    lengths_[i] = s.length;
    for (std::size_t j = 0; j < s.length; ++j)
      rows[j] = alone              ? single_layer_row(s, j, table)
                : j < s.n_shared() ? s.prefix->layout.last_input(s.prefix->slot.data(), j)
                : j < s.start      ? layout_.last_input(s.cache, j)
                                   : layout_.last_input(s.fresh, j);
    if (alone) embed_token(model_, s.tokens[s.length - 1], s.length - 1, layout_.last_residual(s.fresh));
    std::copy_n(layout_.last_residual(s.fresh), d, out.row(i));
  }
  last_.forward(model_.packed().blocks.back(), {segments.size(), n, last_rows_.data(), lengths_.data()}, out);
}

}  // namespace deeptail
