#include "model/cpu/step_pass.h"

#include <algorithm>
#include <array>

#include "model/cpu/pass.h"

namespace deeptail {

StepPass::StepPass(const Transformer& model, const KeptLayout& layout, const KeptPrefix* prefix,
                   std::size_t max_length, std::size_t max_rows, std::size_t max_wanted)
    : model_(model),
      layout_(layout),
      prefix_(prefix),
      max_length_(max_length),
      width_(model.config().d_attn() + 2 * model.config().d_kv()),
      steps_(model.config(), max_length),
      mlp_(model.config()),
      x_(max_rows * model.config().d_model),
      normed_(x_.size()),
      qkv_(max_rows * width_),
      z_(max_rows * model.config().d_attn() + kKeptPad),
      p_(kept_scratch_size(model.config().n_heads, max_length)) {
  if (!model.config().arch.keys_are_still()) return;
  last_.emplace(model.config(), max_wanted, max_length);
  last_rows_.resize(max_wanted * max_length);
  lengths_.resize(max_wanted);
}

void StepPass::attend(const StepRow& row, std::size_t layer, KeptShape::Order order, const float* q,
                      float* z) {
  const ModelConfig& c = model_.config();
  const KeptShape shape{c.n_heads, c.arch.kv_groups, c.d_head, model_.packed().blocks[layer].scale, order};
  std::array<KeptKeys, 2> pieces;
  std::size_t n = 0;
  if (layout_.first() > 0) pieces[n++] = prefix_->layout.keys(prefix_->slot.data(), layer, layout_.first());
  pieces[n++] = layout_.keys(row.slot, layer, row.position + 1);
  attend_kept(shape, {pieces.data(), n}, q, p_.data(), z);
}

void StepPass::full_block(std::size_t layer, std::span<const StepRow> rows) {
  const ModelConfig& c = model_.config();
  const PackedBlock& w = model_.packed().blocks[layer];
  const std::size_t m = rows.size(), d = c.d_model, d_attn = c.d_attn();
  const Rows x{x_.data(), d};
  layernorm(m, x, w.ln1, {normed_.data(), d});
  gemm(m, {normed_.data(), d}, w.w_qkv, {qkv_.data(), width_});
  for (std::size_t i = 0; i < m; ++i) {
    float* q = qkv_.data() + i * width_;
    steps_.queries(w, rows[i].position, q);
    steps_.keys(w, rows[i].position, q + d_attn);
    layout_.keep(rows[i].slot, layer, rows[i].position, q + d_attn, q + d_attn + c.d_kv());
  }
  for (std::size_t i = 0; i < m; ++i)
    attend(rows[i], layer, KeptShape::Order::kChain, qkv_.data() + i * width_, z_.data() + i * d_attn);
  add_outputs(w, c.arch.residual, m, {z_.data(), d_attn}, x, mlp_);
}

// Keys that are not formed: rows of ln1 (last_block.h).
void StepPass::last_carried(std::span<const StepRow> rows, Rows out) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const StepRow& row = rows[i];
    std::copy_n(normed_.data() + i * model_.config().d_model, model_.config().d_model,
                layout_.carried_row(row.slot, row.position));
  }
  for (const StepRow& row : rows) {
    if (!row.wanted) continue;
    lengths_[n] = row.position + 1;
    const float** to = last_rows_.data() + n++ * max_length_;
    for (std::size_t j = 0; j <= row.position; ++j)
      to[j] = j < layout_.first() ? prefix_->layout.carried_row(prefix_->slot.data(), j)
                                  : layout_.carried_row(static_cast<const float*>(row.slot), j);
  }
  last_->forward(model_.packed().blocks.back(), {n, max_length_, last_rows_.data(), lengths_.data()}, out);
}

void StepPass::last_keys(std::span<const StepRow> rows, Rows out) {
  const ModelConfig& c = model_.config();
  const PackedBlock& w = model_.packed().blocks.back();
  const std::size_t layer = c.n_layers - 1, d = c.d_model, d_attn = c.d_attn(), width = 2 * c.d_kv();
  gemm(rows.size(), {normed_.data(), d}, w.w_kv, {qkv_.data(), width});
  std::size_t n = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    float* k = qkv_.data() + i * width;
    steps_.keys(w, rows[i].position, k);
    layout_.keep(rows[i].slot, layer, rows[i].position, k, k + c.d_kv());
    if (rows[i].wanted) std::copy_n(normed_.data() + i * d, d, normed_.data() + n++ * d);
  }
  gemm(n, {normed_.data(), d}, w.w_q, {qkv_.data(), d_attn});
  n = 0;
  for (const StepRow& row : rows) {
    if (!row.wanted) continue;
    float* q = qkv_.data() + n * d_attn;
    steps_.queries(w, row.position, q);
    attend(row, layer, KeptShape::Order::kLanes, q, z_.data() + n++ * d_attn);
  }
  add_outputs(w, c.arch.residual, n, {z_.data(), d_attn}, out, mlp_);
}

void StepPass::last_block(std::span<const StepRow> rows, Rows out) {
  const std::size_t d = model_.config().d_model;
  layernorm(rows.size(), {x_.data(), d}, model_.packed().blocks.back().ln1, {normed_.data(), d});
  std::size_t n = 0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].wanted) std::copy_n(x_.data() + i * d, d, out.row(n++));
  if (last_)
    last_carried(rows, out);
  else
    last_keys(rows, out);
}

void StepPass::run(std::span<const StepRow> rows, Rows out) {
  const ModelConfig& c = model_.config();
  for (std::size_t i = 0; i < rows.size(); ++i)
    embed_token(model_, rows[i].token, rows[i].position, x_.data() + i * c.d_model);
  for (std::size_t layer = 0; layer + 1 < c.n_layers; ++layer) full_block(layer, rows);
  last_block(rows, out);
}

KeptPrefix compute_kept_prefix(const Transformer& model, std::span<const TokenId> tokens) {
  constexpr std::size_t kRows = 96;
  KeptPrefix out{{tokens.begin(), tokens.end()}, KeptLayout(model.config(), tokens.size())};
  out.slot.resize(out.layout.size());
  StepPass pass(model, out.layout, nullptr, tokens.size(), std::min(kRows, tokens.size()), 1);
  std::vector<StepRow> rows;
  for (std::size_t first = 0; first < tokens.size(); first += kRows) {
    rows.clear();
    for (std::size_t i = first; i < std::min(first + kRows, tokens.size()); ++i)
      rows.push_back({.token = tokens[i], .position = i, .slot = out.slot.data()});
    pass.run(rows, {});
  }
  return out;
}

}  // namespace deeptail
