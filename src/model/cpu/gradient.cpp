// Gradients of a logit or a margin with respect to the input embeddings.
#include <algorithm>
#include <numeric>

#include "model/cpu/pass.h"

namespace deeptail {

struct GradientEngine::Impl {
  const Transformer& model;
  std::vector<BlockTransposed> blocks;  // all but the last
  LastTransposed last;
};

GradientEngine::GradientEngine(const Transformer& model) : impl_(new Impl{model, {}, {}}) {
  const auto& blocks = model.packed().blocks;
  for (const PackedBlock& w : blocks) {
    const BlockTransposed t{w.w_qkv.n() > 0 ? w.w_qkv.transposed() : PackedMatrix(), w.w_o.transposed(),
                            w.w_in.transposed(), w.w_out.transposed()};
    if (&w == &blocks.back())
      impl_->last.block = t;
    else
      impl_->blocks.push_back(t);
  }
  impl_->last.w_q = blocks.back().w_q.transposed();
  for (const PackedMatrix& w : blocks.back().w_k_t) impl_->last.w_k.push_back(w.transposed());
  for (const PackedMatrix& w : blocks.back().w_v) impl_->last.w_v_t.push_back(w.transposed());
  if (blocks.back().w_kv.n() > 0) impl_->last.w_kv = blocks.back().w_kv.transposed();
}
GradientEngine::~GradientEngine() = default;

namespace {

// Neighbouring positions: [first, first + count), whose first is number `at` of the wanted ones.
struct PositionRun {
  std::size_t first, count, at;
};
std::vector<PositionRun> runs_of(const std::vector<std::size_t>& positions) {
  std::vector<PositionRun> runs;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (runs.empty() || positions[i] != runs.back().first + runs.back().count)
      runs.push_back({positions[i], 0, i});
    ++runs.back().count;
  }
  return runs;
}

}  // namespace

// Everything that one forward and backward pass over a block of sequences writes.
struct GradientPass::Impl {
  Impl(const GradientEngine::Impl& engine, const Target& target, Shape shape, const FirstLayerTable* table);

  const Transformer& model;
  const GradientEngine::Impl& engine;
  const Target target;
  const PackedMatrix target_columns;  // [d_model, target ids]
  const Shape shape;
  const std::vector<PositionRun> runs;
  const FirstLayerTable* table;

  SlotLayout layout;
  std::size_t rows;  // max_sequences * length
  std::optional<FullBlock> block;
  LastBlock last;
  std::vector<BlockTape> tapes;
  LastTape last_tape;
  std::vector<Segment> segments;
  AlignedVector<float> x;                        // [rows, d_model]: the last block's input
  AlignedVector<float> y;                        // [rows, d_model]: its ln1, where the table does not have it
  AlignedVector<float> stats;                    // [rows, 2] of that ln1
  AlignedVector<float> kv, projected;            // [rows, 2 d_kv]: keys that turn, and before their norms
  std::vector<const float*> y_rows;              // as LastInputs wants them
  AlignedVector<float> normed, dnormed, dresid;  // [sequences, d_model]: around ln_final
  std::vector<float> head_stats;                 // [sequences, 2]
  AlignedVector<float> target_logits;            // [sequences, target ids]
  std::vector<Margin> found;                     // [sequences]
  AlignedVector<float> dy, dx;                   // [rows, d_model]
  ThreadPool serial{1};

  void run(TokenBatch batch, Objective objective, float* values, Rows resid, float* gradients);
  void rows_of_single_layer(TokenBatch batch);
  void rows_of_full_blocks(TokenBatch batch);
  void keys_of_last_block(std::size_t m);
  void find_margins(std::size_t m, Objective objective, ConstRows resid);
  void objective_backward(std::size_t m, Objective objective, ConstRows resid, float* values);
  void single_layer_backward(std::size_t m, float* gradients);
  void full_blocks_backward(std::size_t m, float* gradients);
};

GradientPass::Impl::Impl(const GradientEngine::Impl& e, const Target& t, Shape wanted,
                         const FirstLayerTable* known)
    : model(e.model),
      engine(e),
      target(t),
      target_columns(e.model.head().w_u.columns(t.ids())),
      shape(std::move(wanted)),
      runs(runs_of(shape.positions)),
      table(known),
      layout(e.model.config(), shape.length, false),
      rows(shape.max_sequences * shape.length),
      last(e.model.config(), shape.max_sequences, shape.length),
      segments(shape.max_sequences),
      stats(rows * 2),
      y_rows(rows),
      head_stats(2 * shape.max_sequences),
      found(shape.max_sequences) {
  const ModelConfig& c = model.config();
  if (c.n_layers > 1) block.emplace(c, rows, shape.length);
  for (std::size_t i = 0; i + 1 < c.n_layers; ++i)
    tapes.emplace_back(c, rows, shape.max_sequences, block->padded());
  last_tape = LastTape(c, shape.max_sequences, shape.length);
  if (!c.arch.keys_are_still()) kv.resize(rows * 2 * c.d_kv());
  if (c.arch.qk_norm) projected.resize(kv.size());
  for (AlignedVector<float>* buffer : {&x, &y, &dy}) buffer->resize(rows * c.d_model);
  if (!layout.rows_stand_alone()) dx.resize(rows * c.d_model);
  for (AlignedVector<float>* buffer : {&normed, &dnormed, &dresid})
    buffer->resize(shape.max_sequences * c.d_model);
  target_logits.resize(shape.max_sequences * round_up(t.ids().size(), kPanel));
}

// One layer: a row depends on (token, position) alone, so it comes from the table; only where gradients are
// wanted are x and its statistics needed too.
void GradientPass::Impl::rows_of_single_layer(TokenBatch batch) {
  const std::size_t d = model.config().d_model, n = shape.length;
  const LayerNorm& ln1 = model.packed().blocks.back().ln1;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const TokenId* tokens = batch.row(i);
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t r = i * n + j;
      y_rows[r] = table != nullptr ? table->row(j, tokens[j]) : nullptr;
      if (y_rows[r] != nullptr) continue;
      embed_token(model, tokens[j], j, x.data() + r * d);
      layernorm(1, {x.data() + r * d, d}, ln1, {y.data() + r * d, d}, stats.data() + 2 * r);
      y_rows[r] = y.data() + r * d;
    }
    for (const std::size_t j : shape.positions) {
      const std::size_t r = i * n + j;
      if (y_rows[r] == y.data() + r * d) continue;
      embed_token(model, tokens[j], j, x.data() + r * d);
      std::copy_n(table->statistics(j, tokens[j]), 2, stats.data() + 2 * r);
    }
    embed_token(model, tokens[n - 1], n - 1, x.data() + (i * n + n - 1) * d);
  }
}

void GradientPass::Impl::rows_of_full_blocks(TokenBatch batch) {
  const PackedWeights& w = model.packed();
  const std::size_t d = model.config().d_model, n = shape.length, m = batch.size();
  for (std::size_t i = 0; i < m; ++i) {
    segments[i] = {.tokens = batch.row(i), .length = n, .first_row = i * n};
    for (std::size_t j = 0; j < n; ++j) embed_token(model, batch.row(i)[j], j, x.data() + (i * n + j) * d);
  }
  for (std::size_t layer = 0; layer < tapes.size(); ++layer)
    block->forward(w.blocks[layer], layer, layout, {segments.data(), m}, {x.data(), d}, table, &tapes[layer]);
  layernorm(m * n, {x.data(), d}, w.blocks.back().ln1, {y.data(), d}, stats.data());
  for (std::size_t r = 0; r < m * n; ++r) y_rows[r] = y.data() + r * d;
  if (!kv.empty()) keys_of_last_block(m);
}

void GradientPass::Impl::keys_of_last_block(std::size_t m) {
  const PackedBlock& w = model.packed().blocks.back();
  const std::size_t d = model.config().d_model, n = shape.length, width = layout.last_width();
  last.project(w, m * n, {y.data(), d}, {kv.data(), width});
  if (!projected.empty()) std::copy_n(kv.data(), m * n * width, projected.data());
  for (std::size_t i = 0; i < m; ++i) last.turn(w, n, 0, {kv.data() + i * n * width, width});
  for (std::size_t r = 0; r < m * n; ++r) y_rows[r] = kv.data() + r * width;
}

// The target's logits settle its own best token; the best other one takes the whole vocabulary.
void GradientPass::Impl::find_margins(std::size_t m, Objective objective, ConstRows resid) {
  if (objective == Objective::kMargin)
    return margins(model.head(), target, m, resid, serial, {found.data(), m});
  const std::size_t width = round_up(target.ids().size(), kPanel);
  gemm(m, {normed.data(), model.config().d_model}, target_columns, {target_logits.data(), width});
  for (std::size_t i = 0; i < m; ++i) {
    const Best best = best_of(target.ids().size(), target_logits.data() + i * width);
    found[i] = {best.value, target.ids()[best.index], -1};
  }
}

// values, and dresid: the gradient w.r.t. the residual before ln_final.
void GradientPass::Impl::objective_backward(std::size_t m, Objective objective, ConstRows resid,
                                            float* values) {
  const std::size_t d = model.config().d_model;
  const PackedMatrix& w_u = model.head().w_u;
  layernorm(m, resid, *model.head().ln_final, {normed.data(), d}, head_stats.data());
  find_margins(m, objective, resid);
  for (std::size_t i = 0; i < m; ++i) {
    const auto t = static_cast<std::size_t>(found[i].best_target);
    for (std::size_t k = 0; k < d; ++k) dnormed[i * d + k] = w_u.at(k, t);
    if (objective == Objective::kMargin)
      for (std::size_t k = 0; k < d; ++k)
        dnormed[i * d + k] -= w_u.at(k, static_cast<std::size_t>(found[i].best_other));
    values[i] = found[i].value;
  }
  std::fill_n(dresid.data(), m * d, 0.0f);
  layernorm_backward(m, resid, head_stats.data(), *model.head().ln_final, {dnormed.data(), d},
                     {dresid.data(), d});
}

void GradientPass::Impl::single_layer_backward(std::size_t m, float* gradients) {
  const std::size_t d = model.config().d_model, n = shape.length, wanted = shape.positions.size();
  std::fill_n(gradients, m * wanted * d, 0.0f);
  for (std::size_t i = 0; i < m; ++i) {
    float* out = gradients + i * wanted * d;
    if (wanted > 0 && shape.positions.back() == n - 1)
      std::copy_n(dresid.data() + i * d, d, out + (wanted - 1) * d);
    for (const PositionRun& run : runs) {
      const std::size_t r = i * n + run.first;
      layernorm_backward(run.count, {x.data() + r * d, d}, stats.data() + 2 * r,
                         model.packed().blocks.back().ln1, {dy.data() + r * d, d}, {out + run.at * d, d});
    }
  }
}

void GradientPass::Impl::full_blocks_backward(std::size_t m, float* gradients) {
  const PackedWeights& w = model.packed();
  const std::size_t d = model.config().d_model, n = shape.length, wanted = shape.positions.size();
  std::fill_n(dx.data(), m * n * d, 0.0f);
  for (std::size_t i = 0; i < m; ++i) std::copy_n(dresid.data() + i * d, d, dx.data() + (i * n + n - 1) * d);
  layernorm_backward(m * n, {x.data(), d}, stats.data(), w.blocks.back().ln1, {dy.data(), d}, {dx.data(), d});
  for (std::size_t layer = tapes.size(); layer-- > 0;)
    block->backward(w.blocks[layer], engine.blocks[layer], {segments.data(), m}, tapes[layer],
                    {dx.data(), d});
  for (std::size_t i = 0; i < m; ++i)
    for (const PositionRun& run : runs)
      std::copy_n(dx.data() + (i * n + run.first) * d, run.count * d, gradients + (i * wanted + run.at) * d);
}

void GradientPass::Impl::run(TokenBatch batch, Objective objective, float* values, Rows resid,
                             float* gradients) {
  const PackedBlock& w = model.packed().blocks.back();
  const std::size_t d = model.config().d_model, n = shape.length, m = batch.size();
  const bool alone = layout.rows_stand_alone();
  if (alone)
    rows_of_single_layer(batch);
  else
    rows_of_full_blocks(batch);
  for (std::size_t i = 0; i < m; ++i) std::copy_n(x.data() + (i * n + n - 1) * d, d, resid.row(i));
  const LastInputs in{m, n, y_rows.data()};
  last.forward(w, in, resid, &last_tape);

  objective_backward(m, objective, resid, values);
  last.backward(w, engine.last, in, last_tape, {dresid.data(), d}, {dy.data(), d},
                {projected.data(), layout.last_width()});
  if (alone)
    single_layer_backward(m, gradients);
  else
    full_blocks_backward(m, gradients);
}

std::size_t GradientPass::good_size(const ModelConfig& config) { return config.n_layers == 1 ? 32 : 8; }

GradientPass::GradientPass(const GradientEngine& engine, const Target& target, Shape shape,
                           const FirstLayerTable* table)
    : impl_(new Impl(*engine.impl_, target, std::move(shape), table)) {}
GradientPass::~GradientPass() = default;
GradientPass::GradientPass(GradientPass&&) noexcept = default;

void GradientPass::run(TokenBatch batch, float* values, Rows resid, float* gradients) {
  if (batch.length != impl_->shape.length || !batch.lengths.empty() ||
      batch.size() > impl_->shape.max_sequences)
    throw std::invalid_argument("GradientPass::run: batch does not fit");
  impl_->run(batch, Objective::kTargetLogit, values, resid, gradients);
}

GradientResult GradientEngine::run(TokenBatch batch, const Target& target, Objective objective,
                                   ThreadPool& pool) const {
  const ModelConfig& c = impl_->model.config();
  check_tokens(c, batch);
  if (!batch.lengths.empty()) throw std::invalid_argument("GradientEngine::run: sequences of one length");
  GradientResult out;
  out.values.resize(batch.size());
  out.gradients.resize(batch.tokens.size() * c.d_model);
  const std::size_t group = GradientPass::good_size(c), n = batch.length;
  GradientPass::Shape shape{group, n, std::vector<std::size_t>(n)};
  std::iota(shape.positions.begin(), shape.positions.end(), std::size_t{0});
  std::vector<std::unique_ptr<GradientPass::Impl>> workers(pool.size());
  AlignedVector<float> resid(batch.size() * c.d_model);
  pool.for_each_block((batch.size() + group - 1) / group, [&](std::size_t block, std::size_t w) {
    if (!workers[w]) workers[w] = std::make_unique<GradientPass::Impl>(*impl_, target, shape, nullptr);
    const std::size_t first = block * group, m = std::min(group, batch.size() - first);
    workers[w]->run({batch.tokens.subspan(first * n, m * n), n}, objective, out.values.data() + first,
                    {resid.data() + first * c.d_model, c.d_model},
                    out.gradients.data() + first * n * c.d_model);
  });
  return out;
}

}  // namespace deeptail
