#include "model/cpu/block.h"

#include <algorithm>

namespace deeptail {

BlockTape::BlockTape(const ModelConfig& c, std::size_t rows, std::size_t n_segments, std::size_t padded)
    : x_pre(rows * c.d_model),
      x_mid(rows * c.d_model),
      stats1(rows * 2),
      stats2(rows * 2),
      qkv(rows * (c.d_attn() + 2 * c.d_kv())),
      projected(c.arch.qk_norm ? qkv.size() : 0),
      probabilities(n_segments * c.n_heads * padded * padded),
      hidden(rows * MlpScratch::hidden_width(c)) {}

namespace {

// before: [rows, s.width] -> s.hidden.
void activate(std::size_t rows, const float* before, MlpScratch& s) {
  if (s.mlp == Architecture::Mlp::kGelu) return gelu(rows * s.d_mlp, before, s.hidden.data());
  if (s.mlp == Architecture::Mlp::kGeluTanh) return gelu_tanh(rows * s.d_mlp, before, s.hidden.data());
  for (std::size_t i = 0; i < rows; ++i)
    swiglu(s.d_mlp, before + i * s.width, before + i * s.width + s.d_mlp, s.hidden.data() + i * s.d_mlp);
}

// s.normed -> s.hidden through a gated activation, some columns at a time: what comes before it is never further away than L2.
void gated_hidden(const PackedMatrix& w_in, std::size_t rows, MlpScratch& s) {
  const std::size_t columns = std::min(16 * kPanel, s.d_mlp);
  const ConstRows normed{s.normed.data(), s.d_model};
  float *gate = s.gates.data(), *up = gate + kMlpRows * columns;  // [rows, columns] each
  for (std::size_t first = 0; first < s.d_mlp; first += columns) {
    const std::size_t n = std::min(columns, s.d_mlp - first);
    gemm_panels(rows, normed, w_in, first / kPanel, n / kPanel, {gate, columns});
    gemm_panels(rows, normed, w_in, (s.d_mlp + first) / kPanel, n / kPanel, {up, columns});
    for (std::size_t i = 0; i < rows; ++i)
      swiglu(n, gate + i * columns, up + i * columns, s.hidden.data() + i * s.d_mlp + first);
  }
}

// The gradient in s.hidden -> s.before().
void activate_backward(std::size_t rows, const float* before, MlpScratch& s) {
  const float* dout = s.hidden.data();
  float* out = s.before();
  if (s.mlp == Architecture::Mlp::kGelu) return gelu_backward(rows * s.d_mlp, before, dout, out);
  if (s.mlp == Architecture::Mlp::kGeluTanh) return gelu_tanh_backward(rows * s.d_mlp, before, dout, out);
  for (std::size_t i = 0; i < rows; ++i) {
    const float* gate = before + i * s.width;
    swiglu_backward(s.d_mlp, gate, gate + s.d_mlp, dout + i * s.d_mlp, out + i * s.width,
                    out + i * s.width + s.d_mlp);
  }
}

}  // namespace

void mlp_forward(const PackedBlock& w, std::size_t m, Rows x, MlpScratch& s, BlockTape* tape) {
  for (std::size_t i = 0; i < m; i += kMlpRows) {
    const std::size_t rows = std::min(kMlpRows, m - i);
    float* stats = tape != nullptr ? tape->stats2.data() + 2 * i : nullptr;
    layernorm(rows, x.from(i), w.ln2, {s.normed.data(), s.d_model}, stats);
    if (tape == nullptr && s.gated_in_parts()) {
      gated_hidden(w.w_in, rows, s);
    } else {
      float* before = tape != nullptr ? tape->hidden.data() + i * s.width : s.before();
      gemm(rows, {s.normed.data(), s.d_model}, w.w_in, {before, s.width});
      activate(rows, before, s);
    }
    if (tape != nullptr) std::copy_n(x.row(i), rows * s.d_model, tape->x_mid.data() + i * s.d_model);
    gemm(rows, {s.hidden.data(), s.d_mlp}, w.w_out, x.from(i), GemmMode::kAdd);
  }
}

void add_outputs(const PackedBlock& w, Architecture::Residual residual, std::size_t m, ConstRows z, Rows x,
                 MlpScratch& s, BlockTape* tape) {
  const bool parallel = residual == Architecture::Residual::kParallel;  // the mlp sees what attention saw
  if (parallel) mlp_forward(w, m, x, s, tape);
  gemm(m, z, w.w_o, x, GemmMode::kAdd);
  if (!parallel) mlp_forward(w, m, x, s, tape);
}

void mlp_backward(const PackedBlock& w, const BlockTransposed& t, std::size_t m, const BlockTape& tape,
                  Rows dx, MlpScratch& s) {
  for (std::size_t i = 0; i < m; i += kMlpRows) {
    const std::size_t rows = std::min(kMlpRows, m - i);
    gemm(rows, dx.from(i), t.w_out, {s.hidden.data(), s.d_mlp});
    activate_backward(rows, tape.hidden.data() + i * s.width, s);
    gemm(rows, {s.before(), s.width}, t.w_in, {s.normed.data(), s.d_model});
    layernorm_backward(rows, {tape.x_mid.data() + i * s.d_model, s.d_model}, tape.stats2.data() + 2 * i,
                       w.ln2, {s.normed.data(), s.d_model}, dx.from(i));
  }
}

FullBlock::FullBlock(const ModelConfig& c, std::size_t max_rows, std::size_t max_length)
    : residual_(c.arch.residual),
      d_model_(c.d_model),
      d_attn_(c.d_attn()),
      width_(c.d_attn() + 2 * c.d_kv()),
      steps_(c, max_length),
      attention_(c, max_length),
      mlp_(c),
      normed_(max_rows * c.d_model),
      qkv_(max_rows * width_),
      z_(max_rows * c.d_attn()),
      gathered_(max_rows * std::max(c.d_model, width_)) {
  todo_.reserve(max_rows);
  todo_stats_.resize(2 * max_rows);
}

void FullBlock::turn(const PackedBlock& w, const Segment& s, std::size_t i) {
  float* row = qkv_row(s.first_row + i);
  steps_.queries(w, s.start + i, row);
  steps_.keys(w, s.start + i, row + d_attn_);
}

void FullBlock::project(const PackedBlock& w, std::span<const Segment> segments, Rows x, float* stats) {
  const std::size_t m = segments.back().first_row + segments.back().n_rows();
  layernorm(m, x, w.ln1, {normed_.data(), d_model_}, stats);
  gemm(m, {normed_.data(), d_model_}, w.w_qkv, {qkv_.data(), width_});
}

// Rows of the first layer depend on (token, position) alone: they come from the table, or from the unchanged
// sequence's slot (not with a tape: a slot keeps no statistics), and only the others are computed. Slots have
// them turned, the table has them as projected.
void FullBlock::first_layer_rows(const PackedBlock& w, const SlotLayout& layout,
                                 std::span<const Segment> segments, Rows x, const FirstLayerTable* table,
                                 float* stats) {
  todo_.clear();
  for (const Segment& s : segments)
    for (std::size_t i = 0; i < s.n_rows(); ++i) {
      const std::size_t position = s.start + i, row = s.first_row + i;
      if (s.unchanged(position)) {
        std::copy_n(layout.row(s.cache, 0, position), width_, qkv_row(row));
        continue;
      }
      const float* known = table != nullptr ? table->row(position, s.tokens[position]) : nullptr;
      if (known == nullptr) {
        todo_.push_back(row);
        continue;
      }
      std::copy_n(known, width_, qkv_row(row));
      if (stats != nullptr) std::copy_n(table->statistics(position, s.tokens[position]), 2, stats + 2 * row);
    }
  for (std::size_t i = 0; i < todo_.size(); ++i)
    std::copy_n(x.row(todo_[i]), d_model_, gathered_.data() + i * d_model_);
  layernorm(todo_.size(), {gathered_.data(), d_model_}, w.ln1, {normed_.data(), d_model_},
            todo_stats_.data());
  gemm(todo_.size(), {normed_.data(), d_model_}, w.w_qkv, {gathered_.data(), width_});
  for (std::size_t i = 0; i < todo_.size(); ++i) {
    std::copy_n(gathered_.data() + i * width_, width_, qkv_row(todo_[i]));
    if (stats != nullptr) std::copy_n(todo_stats_.data() + 2 * i, 2, stats + 2 * todo_[i]);
  }
}

void FullBlock::keep_keys(std::size_t layer, const SlotLayout& layout, const Segment& s) {
  const std::size_t width = layout.width(layer), skip = width_ - width;  // queries are kept in the first only
  for (std::size_t i = 0; i < s.n_rows(); ++i)
    std::copy_n(qkv_row(s.first_row + i) + skip, width, layout.row(s.fresh, layer, s.start + i));
}

void FullBlock::attend(const PackedBlock& w, std::size_t layer, const SlotLayout& layout,
                       std::span<const Segment> segments, BlockTape* tape) {
  const ConstRows qkv{qkv_.data(), width_};
  float* probabilities = tape != nullptr ? tape->probabilities.data() : nullptr;
  for (const Segment& s : segments) {
    if (layout.keep_keys()) keep_keys(layer, layout, s);
    const ConstRows fresh{qkv.row(s.first_row) + d_attn_, qkv.stride};
    const std::size_t n_shared = s.n_shared();
    ConstRows shared, cached;
    if (n_shared > 0)
      shared = {s.prefix->layout.keys(s.prefix->slot.data(), layer, 0), s.prefix->layout.width(layer)};
    if (s.cache != nullptr) cached = {layout.keys(s.cache, layer, n_shared), layout.width(layer)};
    attention_.forward(qkv.from(s.first_row), {shared, cached, fresh, n_shared, s.start, s.length}, w.scale,
                       {z_.data() + s.first_row * d_attn_, d_attn_}, probabilities);
    if (tape != nullptr) probabilities += attention_.probabilities_size(s.length);
  }
}

void FullBlock::forward(const PackedBlock& w, std::size_t layer, const SlotLayout& layout,
                        std::span<const Segment> segments, Rows x, const FirstLayerTable* table,
                        BlockTape* tape) {
  const std::size_t m = segments.back().first_row + segments.back().n_rows();
  const bool reuse = layer == 0 && (table != nullptr || segments.front().cached_tokens != nullptr);
  float* stats = tape != nullptr ? tape->stats1.data() : nullptr;
  if (reuse)
    first_layer_rows(w, layout, segments, x, table, stats);
  else
    project(w, segments, x, stats);
  if (tape != nullptr)
    std::copy_n(qkv_.data(), tape->projected.empty() ? 0 : m * width_, tape->projected.data());
  if (!steps_.none())
    for (const Segment& s : segments)
      for (std::size_t i = 0; i < s.n_rows(); ++i)
        if (!reuse || !s.unchanged(s.start + i)) turn(w, s, i);
  attend(w, layer, layout, segments, tape);
  if (tape != nullptr) {
    std::copy_n(x.data, m * d_model_, tape->x_pre.data());
    std::copy_n(qkv_.data(), m * width_, tape->qkv.data());
  }
  add_outputs(w, residual_, m, {z_.data(), d_attn_}, x, mlp_, tape);
}

void FullBlock::turn_back(const PackedBlock& w, std::span<const Segment> segments, const BlockTape& tape) {
  for (const Segment& s : segments)
    for (std::size_t i = 0; i < s.n_rows(); ++i) {
      const std::size_t row = s.first_row + i;
      const float* before = tape.projected.empty() ? nullptr : tape.projected.data() + row * width_;
      steps_.queries_backward(w, s.start + i, before, qkv_row(row));
      steps_.keys_backward(w, s.start + i, before == nullptr ? nullptr : before + d_attn_,
                           qkv_row(row) + d_attn_);
    }
}

void FullBlock::backward(const PackedBlock& w, const BlockTransposed& t, std::span<const Segment> segments,
                         const BlockTape& tape, Rows dx) {
  const std::size_t m = segments.back().first_row + segments.back().n_rows();
  if (residual_ == Architecture::Residual::kParallel) {
    gemm(m, dx, t.w_o, {z_.data(), d_attn_});  // dz
    mlp_backward(w, t, m, tape, dx, mlp_);
  } else {
    mlp_backward(w, t, m, tape, dx, mlp_);
    gemm(m, dx, t.w_o, {z_.data(), d_attn_});  // dz
  }
  const float* probabilities = tape.probabilities.data();
  for (const Segment& s : segments) {
    attention_.backward(s.length, {tape.qkv.data() + s.first_row * width_, width_}, w.scale, probabilities,
                        {z_.data() + s.first_row * d_attn_, d_attn_}, {qkv_row(s.first_row), width_});
    probabilities += attention_.probabilities_size(s.length);
  }
  if (!steps_.none()) turn_back(w, segments, tape);
  gemm(m, {qkv_.data(), width_}, t.w_qkv, {normed_.data(), d_model_});
  layernorm_backward(m, {tape.x_pre.data(), d_model_}, tape.stats1.data(), w.ln1, {normed_.data(), d_model_},
                     dx);
}

}  // namespace deeptail
