// What a model says after prompts of a law.
#include <algorithm>

#include "core/random.h"
#include "core/screen_text.h"
#include "deeptail/continuation.h"

namespace deeptail {

namespace {

constexpr std::size_t kMostAtOnce = 1024, kMostNumbers = std::size_t{1} << 22, kUsualTokens = 64;

SamplingConfig with_length(SamplingConfig sampling, std::optional<std::size_t> within,
                           const LoadedModel& model, const InputLaw& law) {
  const std::size_t n_ctx = model.config().n_ctx, given = std::min(law.facts().max_length, n_ctx - 1);
  sampling.max_tokens = within.value_or(std::clamp<std::size_t>(n_ctx - given, 1, kUsualTokens));
  sampling.validate(model.config().d_vocab);
  if (sampling.max_tokens > n_ctx)
    throw InputError("{} new tokens: {} takes at most {}, the prompt's included", sampling.max_tokens,
                     screen_text(model.name), n_ctx);
  return sampling;
}

}  // namespace

TextGenerator::TextGenerator(const LoadedModel& model, const InputLaw& law, const SamplingConfig& sampling,
                             std::optional<std::size_t> within)
    : model_(model), law_(law), sampling_(with_length(sampling, within, model, law)) {
  if (!model.tokenizer) return;
  tokenizer_ = &model.tokenizer->tokenizer;
  if (tokenizer_->decodes_by_token()) texts_ = token_texts(*tokenizer_, model.config().d_vocab);
}

std::size_t TextGenerator::at_once() const {
  return std::clamp<std::size_t>(kMostNumbers / sampling_.max_tokens, 1, kMostAtOnce);
}

std::vector<SaidText> TextGenerator::texts(std::uint64_t seed, std::uint64_t first, std::size_t n,
                                           ThreadPool& pool) const {
  const Inputs prompts = sample_inputs(law_, seed, first, n, pool);
  std::vector<std::uint64_t> numbers(sampling_.greedy ? 0 : n * sampling_.max_tokens);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = uniform64({seed, Stream::kInputs}, first + i / sampling_.max_tokens,
                           static_cast<std::uint32_t>(law_.facts().n_parts + i % sampling_.max_tokens));
  const Continuations found = continue_texts(model_.transformer, sampling_, prompts.batch(), numbers, pool);
  std::vector<SaidText> out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(said(prompts.sequence(i), found.of(i)));
  return out;
}

SaidText TextGenerator::said(std::span<const TokenId> prompt, std::span<const TokenId> tokens) const {
  SaidText text{.prompt_tokens = {prompt.begin(), prompt.end()}, .stopped = sampling_.stops(tokens.back())};
  if (text.stopped) tokens = tokens.first(tokens.size() - 1);
  text.tokens.assign(tokens.begin(), tokens.end());
  if (tokenizer_ == nullptr) return text;
  text.prompt = tokenizer_->decode_all(prompt);
  text.continuation = texts_ ? texts_->continuation(prompt, tokens) : tokenizer_->decode_all(tokens);
  return text;
}

}  // namespace deeptail
