// Gradients of a logit or a margin with respect to the input embeddings.
#include <algorithm>

#include "model/pass.h"

namespace deeptail {

namespace {
constexpr std::size_t kGradientSequences = 8;  // one block of work; results do not depend on it
}

struct GradientEngine::Impl {
  const Transformer& model;
  std::vector<BlockTransposed> blocks;  // all but the last
  LastTransposed last;

  struct Worker;
  void run_block(TokenBatch batch, const Target& target, Objective objective, std::size_t first,
                 std::size_t m, Worker& worker, GradientResult& out) const;
};

// Everything that one forward and backward pass over a block of sequences writes.
struct GradientEngine::Impl::Worker {
  Worker(const ModelConfig& c, std::size_t length)
      : layout(c, length, false),
        rows(kGradientSequences * length),
        last(c, kGradientSequences, length),
        x(rows * c.d_model),
        y(rows * c.d_model),
        stats(rows * 2),
        resid(kGradientSequences * c.d_model),
        normed(kGradientSequences * c.d_model),
        dresid(kGradientSequences * c.d_model),
        dy(rows * c.d_model),
        y_rows(rows) {
    if (c.n_layers > 1) block.emplace(c, rows, length);
    for (std::size_t i = 0; i + 1 < c.n_layers; ++i)
      tapes.emplace_back(c, rows, kGradientSequences, block->padded());
    last_tape.mlp = BlockTape(c, kGradientSequences, 0, 0);
    last_tape.u.resize(kGradientSequences * c.n_heads * c.d_model);
    last_tape.p.resize(kGradientSequences * c.n_heads * length);
  }
  SlotLayout layout;
  std::size_t rows;
  std::optional<FullBlock> block;
  LastBlock last;
  std::vector<BlockTape> tapes;
  LastTape last_tape;
  AlignedVector<float> x, y;           // [rows, d_model]: the last block's input, and its ln1
  AlignedVector<float> stats;          // [rows, 2] of that ln1
  AlignedVector<float> resid, normed;  // [sequences, d_model]: output at the last position, and its ln_final
  AlignedVector<float> dresid;         // [sequences, d_model]
  AlignedVector<float> dy;             // [rows, d_model]
  std::vector<const float*> y_rows;
  ThreadPool serial{1};
};

GradientEngine::GradientEngine(const Transformer& model) : impl_(new Impl{model, {}, {}}) {
  const auto& blocks = model.weights().blocks;
  for (const BlockWeights& w : blocks) {
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
}
GradientEngine::~GradientEngine() = default;

namespace {

// values, and dresid: the gradient w.r.t. the residual before ln_final.
void objective_backward(const Transformer& model, const Target& target, Objective objective, std::size_t m,
                        ConstRows resid, Rows normed, Rows dresid, float* values, ThreadPool& serial) {
  const std::size_t d = model.config().d_model;
  const Head& head = model.head();
  const PackedMatrix& w_u = head.w_u;
  std::vector<float> stats(2 * m), dnormed(m * d);
  layernorm(m, resid, *head.ln_final, normed, stats.data());
  std::vector<Margin> found(m);
  margins(head, target, m, resid, serial, found);
  for (std::size_t i = 0; i < m; ++i) {
    const auto t = static_cast<std::size_t>(found[i].best_target),
               o = static_cast<std::size_t>(found[i].best_other);
    const bool with_other = objective == Objective::kMargin;
    for (std::size_t k = 0; k < d; ++k)
      dnormed[i * d + k] = w_u.at(k, t) - (with_other ? w_u.at(k, o) : 0.0f);
    float logit = 0.0f;  // the same chain as the product's
    for (std::size_t k = 0; k < d; ++k) logit = std::fma(normed.row(i)[k], w_u.at(k, t), logit);
    values[i] = with_other ? found[i].value : logit + w_u.bias()[t];
  }
  std::fill_n(dresid.data, m * d, 0.0f);
  layernorm_backward(m, resid, stats.data(), *head.ln_final, {dnormed.data(), d}, dresid);
}

}  // namespace

void GradientEngine::Impl::run_block(TokenBatch batch, const Target& target, Objective objective,
                                     std::size_t first, std::size_t m, Worker& s, GradientResult& out) const {
  const Weights& w = model.weights();
  const std::size_t d = model.config().d_model, n = batch.length;
  std::vector<Segment> segments(m);
  for (std::size_t i = 0; i < m; ++i) {
    segments[i] = {.tokens = batch.row(first + i), .length = n, .first_row = i * n};
    for (std::size_t j = 0; j < n; ++j)
      embed_token(model, batch.row(first + i)[j], j, s.x.data() + (i * n + j) * d);
  }
  const Rows x{s.x.data(), d}, y{s.y.data(), d}, resid{s.resid.data(), d}, dresid{s.dresid.data(), d};
  for (std::size_t layer = 0; layer < s.tapes.size(); ++layer)
    s.block->forward(w.blocks[layer], layer, s.layout, segments, x, nullptr, &s.tapes[layer]);
  layernorm(m * n, x, w.blocks.back().ln1, y, s.stats.data());
  for (std::size_t r = 0; r < m * n; ++r) s.y_rows[r] = y.row(r);
  for (std::size_t i = 0; i < m; ++i) std::copy_n(x.row(i * n + n - 1), d, resid.row(i));
  s.last.forward(w.blocks.back(), m, n, s.y_rows.data(), resid, &s.last_tape);

  objective_backward(model, target, objective, m, resid, {s.normed.data(), d}, dresid,
                     out.values.data() + first, s.serial);
  const Rows dx{out.gradients.data() + first * n * d, d}, dy{s.dy.data(), d};
  s.last.backward(w.blocks.back(), last, m, n, s.y_rows.data(), s.last_tape, dresid, dy);
  std::fill_n(dx.data, m * n * d, 0.0f);
  for (std::size_t i = 0; i < m; ++i) std::copy_n(dresid.row(i), d, dx.row(i * n + n - 1));
  layernorm_backward(m * n, x, s.stats.data(), w.blocks.back().ln1, dy, dx);
  for (std::size_t layer = s.tapes.size(); layer-- > 0;)
    s.block->backward(w.blocks[layer], blocks[layer], segments, s.tapes[layer], dx);
}

GradientResult GradientEngine::run(TokenBatch batch, const Target& target, Objective objective,
                                   ThreadPool& pool) const {
  check_tokens(impl_->model.config(), batch);
  GradientResult out;
  out.values.resize(batch.size());
  out.gradients.resize(batch.tokens.size() * impl_->model.config().d_model);
  std::vector<std::unique_ptr<Impl::Worker>> workers(pool.size());
  pool.for_each_block(
      (batch.size() + kGradientSequences - 1) / kGradientSequences, [&](std::size_t block, std::size_t w) {
        if (!workers[w]) workers[w] = std::make_unique<Impl::Worker>(impl_->model.config(), batch.length);
        const std::size_t first = block * kGradientSequences;
        impl_->run_block(batch, target, objective, first, std::min(kGradientSequences, batch.size() - first),
                         *workers[w], out);
      });
  return out;
}

}  // namespace deeptail
