#include <algorithm>
#include <stdexcept>

#include "deeptail/sampling.h"

namespace deeptail {

namespace {

constexpr std::size_t kMostTextsAtOnce = 1024, kMostSlotBytes = std::size_t{512} << 20;

// What all prompts begin with.
std::span<const TokenId> common_start(TokenBatch prompts) {
  std::size_t n = prompts.length_of(0);
  for (std::size_t i = 1; i < prompts.size(); ++i) {
    const std::size_t both = std::min(n, prompts.length_of(i));
    n = static_cast<std::size_t>(std::mismatch(prompts.row(0), prompts.row(0) + both, prompts.row(i)).first -
                                 prompts.row(0));
  }
  return {prompts.row(0), n};
}

}  // namespace

Continuations continue_texts(const Transformer& model, const SamplingConfig& config, TokenBatch prompts,
                             std::span<const std::uint64_t> numbers, ThreadPool& pool) {
  const ModelConfig& c = model.config();
  const std::size_t n = prompts.size(), n_new = config.max_tokens;
  config.validate(c.d_vocab);
  if (!config.greedy && numbers.size() != n * n_new)
    throw std::invalid_argument("continue_texts: one number per text and new token");
  Continuations out{n_new, std::vector<TokenId>(n * n_new), std::vector<std::uint32_t>(n)};
  if (n == 0) return out;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < n; ++i) longest = std::max(longest, prompts.length_of(i));
  if (longest > c.n_ctx || n_new > c.n_ctx - longest)
    throw InputError("a prompt of {} tokens and {} new ones: {} takes at most {}", longest, n_new,
                     c.model_name, c.n_ctx);

  const std::span<const TokenId> prefix = common_start(prompts);
  const std::size_t length = longest + n_new, bytes = Decoder::bytes_per_slot(c, length, prefix.size());
  const std::size_t at_once =
      std::clamp<std::size_t>(kMostSlotBytes / bytes, 1, std::min(n, kMostTextsAtOnce));
  Decoder decoder(model, at_once, length, pool, prefix);
  std::vector<NextTokenLaw> laws(pool.size(), NextTokenLaw(config, c.d_vocab));
  std::vector<TokenId> tokens(at_once * length);
  std::vector<Decoder::Text> texts;
  for (std::size_t first = 0; first < n; first += at_once) {
    texts.clear();
    for (std::size_t i = first; i < std::min(first + at_once, n); ++i) {
      TokenId* row = tokens.data() + (i - first) * length;
      std::copy_n(prompts.row(i), prompts.length_of(i), row);
      texts.push_back({.slot = i - first, .tokens = row, .length = prompts.length_of(i)});
    }
    decoder.run(texts,
                [&](std::size_t i, std::size_t at, std::span<const float> logits,
                    std::size_t worker) -> Decoder::Choice {
                  NextTokenLaw& law = laws[worker];
                  const std::size_t step = at - prompts.length_of(first + i);
                  law.set(logits);
                  const TokenId next = law.draw(config.greedy ? 0 : numbers[(first + i) * n_new + step]);
                  return {next, step + 1 == n_new || config.stops(next)};
                });
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::size_t given = prompts.length_of(first + i);
      out.lengths[first + i] = static_cast<std::uint32_t>(texts[i].length - given);
      std::copy(texts[i].tokens + given, texts[i].tokens + texts[i].length,
                out.tokens.data() + (first + i) * n_new);
    }
  }
  return out;
}

}  // namespace deeptail
