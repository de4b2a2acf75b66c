#include <algorithm>
#include <atomic>
#include <optional>
#include <stdexcept>

#include "core/memory.h"
#include "deeptail/sampling.h"
#include "model/cpu/step_pass.h"

namespace deeptail {

namespace {

// Texts that a worker steps side by side, and positions that go through the model together: more while given tokens are
// taken in. Results do not depend on them. Few texts stay in the cache with a small model; the weights of a large one come
// from memory at every step, and serve more of them.
constexpr std::size_t kRows = 96;
std::size_t most_texts(const ModelConfig& config) { return config.d_model < 256 ? kRows / 2 : kRows; }

// The prefix is kept short of its last position, which gives the first logits of a text that is no longer.
std::size_t n_shared(std::size_t n_prefix) { return n_prefix == 0 ? 0 : n_prefix - 1; }

}  // namespace

struct Decoder::Impl {
  const Transformer& model;
  std::size_t max_length;
  ThreadPool& pool;
  std::vector<TokenId> prefix;
  KeptLayout layout;
  std::optional<KeptPrefix> kept_prefix = {};
  AlignedVector<float> slots = {};      // [n_slots][layout.size()]
  std::vector<std::size_t> valid = {};  // [n_slots]
  struct Worker;
  std::vector<std::unique_ptr<Worker>> workers = {};

  float* slot(std::size_t i) { return slots.data() + i * layout.size(); }
  void check(std::span<const Text> texts) const;
};

// A text on its way: positions before `next` are in its slot.
struct GoingText {
  std::size_t text, next;
};

// One worker's scratch: allocated once, so that a step allocates nothing.
struct Decoder::Impl::Worker {
  explicit Worker(const Impl& m)
      : n_texts(most_texts(m.model.config())),
        pass(m.model, m.layout, m.kept_prefix ? &*m.kept_prefix : nullptr, m.max_length, kRows, n_texts),
        resid(n_texts * m.model.config().d_model),
        normed(resid.size()),
        stride(round_up(m.model.config().d_vocab, kPanel)),
        logits(n_texts * stride) {
    going.reserve(n_texts);
    rows.reserve(kRows);
    asking.reserve(n_texts);
  }
  void take_rows(Impl& m, std::span<const Text> texts);
  void unembed(const Head& head);
  void step(Impl& m, std::span<Text> texts, const Choose& choose, std::size_t worker);

  std::size_t n_texts;
  StepPass pass;
  AlignedVector<float> resid, normed;  // [n_texts, d_model]
  std::size_t stride;
  AlignedVector<float> logits;      // [n_texts, stride]
  std::vector<GoingText> going;     // at most n_texts
  std::vector<StepRow> rows;        // of this step
  std::vector<std::size_t> asking;  // those of going whose logits this step computes
};

Decoder::Decoder(const Transformer& model, std::size_t n_slots, std::size_t max_length, ThreadPool& pool,
                 std::span<const TokenId> prefix)
    : impl_(new Impl{model,
                     max_length,
                     pool,
                     {prefix.begin(), prefix.end()},
                     KeptLayout(model.config(), max_length, n_shared(prefix.size()))}) {
  Impl& m = *impl_;
  const std::size_t shared = m.layout.first();
  if (max_length == 0 || max_length > model.config().n_ctx)
    throw InputError("texts of {} tokens: expected 1 to n_ctx = {}", max_length, model.config().n_ctx);
  if (prefix.size() > max_length) throw std::invalid_argument("Decoder: a prefix longer than the texts");
  check_memory(fmt::format("the keys of {} texts of {} tokens", n_slots, max_length),
               static_cast<double>(n_slots) * static_cast<double>(m.layout.size() * sizeof(float)),
               "decode fewer or shorter texts at once");
  if (shared > 0) {
    check_tokens(model.config(), {prefix, prefix.size()});
    m.kept_prefix = compute_kept_prefix(model, prefix.first(shared));
  }
  m.slots.resize(n_slots * m.layout.size());
  m.valid.resize(n_slots, shared);
  m.workers.resize(pool.size());
}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;

void Decoder::Impl::check(std::span<const Text> texts) const {
  std::vector<std::uint8_t> seen(valid.size());
  for (const Text& text : texts) {
    if (text.slot >= valid.size() || seen[text.slot]++ != 0)
      throw std::invalid_argument("Decoder: each slot at most once");
    if (text.length == 0 || text.length > max_length || text.valid > valid[text.slot])
      throw std::invalid_argument("Decoder: a text that its slot does not hold");
    if (text.length < prefix.size() || !std::equal(prefix.begin(), prefix.end(), text.tokens))
      throw std::invalid_argument("Decoder: a text that does not begin with the prefix");
    check_tokens(model.config(), {{text.tokens, text.length}, text.length});
  }
}

// Every text's given positions that are not computed yet, as many as there is room for: one, once it grows.
void Decoder::Impl::Worker::take_rows(Impl& m, std::span<const Text> texts) {
  rows.clear();
  asking.clear();
  for (std::size_t i = 0; i < going.size() && rows.size() < kRows; ++i) {
    const Text& text = texts[going[i].text];
    const std::size_t end = std::min(text.length, going[i].next + kRows - rows.size());
    for (std::size_t at = going[i].next; at < end; ++at)
      rows.push_back({.token = text.tokens[at],
                      .position = at,
                      .slot = m.slot(text.slot),
                      .wanted = at + 1 == text.length});
    if (end == text.length) asking.push_back(i);
    going[i].next = end;
  }
}

void Decoder::Impl::Worker::unembed(const Head& head) {
  const Rows to{normed.data(), head.d_model()};
  head.normalise(asking.size(), {resid.data(), head.d_model()}, to);
  gemm(asking.size(), to, head.w_u, {logits.data(), stride});
}

void Decoder::Impl::Worker::step(Impl& m, std::span<Text> texts, const Choose& choose, std::size_t worker) {
  const ModelConfig& c = m.model.config();
  take_rows(m, texts);
  pass.run(rows, {resid.data(), c.d_model});
  for (const GoingText& g : going) m.valid[texts[g.text].slot] = g.next;
  unembed(m.model.head());
  for (std::size_t a = 0; a < asking.size(); ++a) {
    GoingText& g = going[asking[a]];
    Text& text = texts[g.text];
    const Choice next = choose(g.text, text.length, {logits.data() + a * stride, c.d_vocab}, worker);
    if (next.token != kEndOfText) {
      if (next.token < 0 || static_cast<std::size_t>(next.token) >= c.d_vocab)
        throw std::invalid_argument("Decoder: the choice is no token");
      text.tokens[text.length++] = next.token;
    }
    if (next.token == kEndOfText || next.last || text.length == m.max_length) g.text = texts.size();
  }
  std::erase_if(going, [&](const GoingText& g) { return g.text == texts.size(); });
}

void Decoder::run(std::span<Text> texts, const Choose& choose) {
  Impl& m = *impl_;
  m.check(texts);
  std::vector<GoingText> todo;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].length == m.max_length) continue;
    const std::size_t start = std::max(std::min(texts[i].valid, texts[i].length - 1), m.layout.first());
    todo.push_back({i, start});
    m.valid[texts[i].slot] = start;
  }
  const std::size_t n_workers = std::min(m.pool.size(), todo.size());
  if (n_workers == 0) return;
  const std::size_t side_by_side =
      std::min(most_texts(m.model.config()), (todo.size() + n_workers - 1) / n_workers);
  std::atomic<std::size_t> next = 0;
  // A text that ends makes room for another one, so that workers need not wait for each other.
  m.pool.for_each_block(n_workers, [&](std::size_t, std::size_t w) {
    if (!m.workers[w]) m.workers[w] = std::make_unique<Impl::Worker>(m);
    Impl::Worker& worker = *m.workers[w];
    worker.going.clear();
    for (;;) {
      while (worker.going.size() < side_by_side) {
        const std::size_t at = next.fetch_add(1);
        if (at >= todo.size()) break;
        worker.going.push_back(todo[at]);
      }
      if (worker.going.empty()) return;
      worker.step(m, texts, choose, w);
    }
  });
}

void Decoder::copy(std::size_t from, std::size_t to, std::size_t positions) {
  Impl& m = *impl_;
  if (positions > m.valid.at(from)) throw std::invalid_argument("Decoder: keys that the slot does not hold");
  const std::size_t end = std::max(positions, m.layout.first());
  if (from != to) m.layout.copy(m.slot(from), m.slot(to), end);
  m.valid.at(to) = end;
}

std::size_t Decoder::valid(std::size_t slot) const { return impl_->valid.at(slot); }
std::size_t Decoder::n_slots() const { return impl_->valid.size(); }
std::size_t Decoder::max_length() const { return impl_->max_length; }
std::size_t Decoder::bytes_per_slot(const ModelConfig& config, std::size_t max_length, std::size_t n_prefix) {
  return KeptLayout(config, max_length, n_shared(n_prefix)).size() * sizeof(float);
}

}  // namespace deeptail
