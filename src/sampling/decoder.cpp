#include <algorithm>
#include <stdexcept>

#include "deeptail/sampling.h"

namespace deeptail {

struct Decoder::Impl {
  const Transformer& model;
  std::size_t max_length;
  ThreadPool& pool;
  std::vector<TokenId> prefix;
  std::vector<std::size_t> valid;  // [n_slots]

  void check(std::span<const Text> texts) const;
};

Decoder::Decoder(const Transformer& model, std::size_t n_slots, std::size_t max_length, ThreadPool& pool,
                 std::span<const TokenId> prefix)
    : impl_(new Impl{model, max_length, pool, {prefix.begin(), prefix.end()}, {}}) {
  impl_->valid.resize(n_slots);
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

void Decoder::run(std::span<Text> texts, const Choose& choose) {
  Impl& m = *impl_;
  m.check(texts);
  const std::size_t d = m.model.config().d_model, d_vocab = m.model.config().d_vocab;
  std::vector<std::size_t> going;
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (texts[i].length < m.max_length) going.push_back(i);
  while (!going.empty()) {
    std::vector<TokenId> tokens(going.size() * m.max_length);
    std::vector<std::uint32_t> lengths;
    for (std::size_t i = 0; i < going.size(); ++i) {
      const Text& text = texts[going[i]];
      std::copy_n(text.tokens, text.length, tokens.data() + i * m.max_length);
      lengths.push_back(static_cast<std::uint32_t>(text.length));
      m.valid[text.slot] = text.length;
    }
    AlignedVector<float> resid(going.size() * d), out(going.size() * d_vocab);
    final_residuals(m.model, {tokens, m.max_length, lengths}, m.pool, {resid.data(), d});
    logits(m.model.head(), going.size(), {resid.data(), d}, m.pool, {out.data(), d_vocab});
    std::vector<std::uint8_t> goes_on(going.size());
    m.pool.for_each_block(going.size(), [&](std::size_t i, std::size_t worker) {
      Text& text = texts[going[i]];
      const Choice next = choose(going[i], text.length, {out.data() + i * d_vocab, d_vocab}, worker);
      if (next.token == kEndOfText) return;
      text.tokens[text.length++] = next.token;
      goes_on[i] = !next.last && text.length < m.max_length;
    });
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < going.size(); ++i)
      if (goes_on[i] != 0) left.push_back(going[i]);
    going = left;
  }
}

void Decoder::copy(std::size_t from, std::size_t to, std::size_t positions) {
  if (positions > impl_->valid.at(from))
    throw std::invalid_argument("Decoder: keys that the slot does not hold");
  impl_->valid.at(to) = positions;
}

std::size_t Decoder::valid(std::size_t slot) const { return impl_->valid.at(slot); }
std::size_t Decoder::n_slots() const { return impl_->valid.size(); }
std::size_t Decoder::max_length() const { return impl_->max_length; }
std::size_t Decoder::bytes_per_slot(const ModelConfig& config, std::size_t max_length, std::size_t n_prefix) {
  return config.n_layers * (max_length - n_prefix) * 2 * config.d_kv() * sizeof(float);
}

}  // namespace deeptail
