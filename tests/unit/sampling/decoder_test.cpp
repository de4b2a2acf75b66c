// Texts that grow in batches with kept keys have the logits of a full run at every step, to the bit.
#include <atomic>
#include <random>

#include "core/random.h"
#include "deeptail/sampling.h"
#include "sizes.h"
#include "unit/model/fixture.h"

namespace deeptail {
namespace {

// The logits of a text by a full run over it alone.
AlignedVector<float> plain_logits(const Transformer& model, std::span<const TokenId> tokens) {
  ThreadPool pool(1);
  const ModelConfig& c = model.config();
  const auto resid = residuals_of(model, {tokens, tokens.size()}, pool);
  AlignedVector<float> out(c.d_vocab);
  logits(model.head(), 1, {resid.data(), c.d_model}, pool, {out.data(), c.d_vocab});
  return out;
}

// Texts of unequal lengths with the numbers that drive them.
struct Batch {
  Batch(const Transformer& of, std::size_t n, std::size_t longest, std::size_t prefix, unsigned seed)
      : model(of), max_length(longest), tokens(some_tokens(of.config(), n, longest, seed)) {
    std::mt19937 engine(seed);
    for (std::size_t i = 0; i < n; ++i) {
      std::copy_n(tokens.data(), prefix, row(i));
      const std::size_t least = std::max<std::size_t>(prefix, 1);
      texts.push_back(
          {.slot = n - 1 - i, .tokens = row(i), .length = least + engine() % (max_length - least + 1)});
    }
  }
  TokenId* row(std::size_t i) { return tokens.data() + i * max_length; }
  std::span<const TokenId> text(std::size_t i) const { return {texts[i].tokens, texts[i].length}; }

  // Draws with numbers of `round`; one in nine tokens ends a text, one in fifteen is its last. Every logit is compared.
  void decode(Decoder& decoder, std::uint64_t round, bool compare) {
    std::vector<NextTokenLaw> laws(16, NextTokenLaw({.temperature = 1.3}, model.config().d_vocab));
    std::atomic<std::size_t> wrong = 0;
    decoder.run(texts,
                [&](std::size_t i, std::size_t length, std::span<const float> found,
                    std::size_t worker) -> Decoder::Choice {
                  if (compare) {
                    const auto expected = plain_logits(model, {row(i), length});
                    wrong += !std::equal(found.begin(), found.end(), expected.begin());
                  }
                  laws[worker].set(found);
                  const std::uint64_t number =
                      uniform64({round, Stream::kInputs}, i, static_cast<std::uint32_t>(length));
                  if (number % 9 == 0) return kEndOfText;
                  return {laws[worker].draw(number), number % 15 == 0};
                });
    EXPECT_EQ(wrong, 0u);
  }

  const Transformer& model;
  std::size_t max_length;
  std::vector<TokenId> tokens;
  std::vector<Decoder::Text> texts;
};

class DecoderTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, DecoderTest, ::testing::ValuesIn(all_fixture_names()), name_of_param);

TEST_P(DecoderTest, LogitsEqualFullRunsToTheBit) {
  const Fixture fixture = load_fixture(GetParam());
  const ModelConfig& c = fixture.model.config();
  const std::size_t n = sized(17, 7), length = std::min<std::size_t>(c.n_ctx, 21);
  for (const std::size_t prefix : {0, 5}) {
    std::vector<std::vector<TokenId>> said;
    for (const std::size_t threads : {1, 2, 7}) {
      ThreadPool pool(threads);
      Batch batch(fixture.model, n, length, prefix, 4);
      Decoder decoder(fixture.model, n, length, pool, std::span(batch.tokens).first(prefix));
      batch.decode(decoder, 1, threads == 2);
      said.push_back(batch.tokens);
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t held = decoder.valid(batch.texts[i].slot), said_by_it = batch.texts[i].length;
        EXPECT_LE(held, said_by_it);
        EXPECT_GE(held + 1,
                  Batch(fixture.model, n, length, prefix, 4).texts[i].length < length ? said_by_it : 0);
      }
    }
    EXPECT_EQ(said[0], said[1]);
    EXPECT_EQ(said[0], said[2]);
  }
}

// Suffixes drawn anew from kept keys, and texts that go on from copies of others.
TEST_P(DecoderTest, KeptKeysEqualAFreshStart) {
  const Fixture fixture = load_fixture(GetParam());
  const ModelConfig& c = fixture.model.config();
  const std::size_t n = sized(13, 7), length = std::min<std::size_t>(c.n_ctx, 37), prefix = 2;
  ThreadPool pool(2);
  Batch batch(fixture.model, n, length, prefix, 6);
  Decoder decoder(fixture.model, n, length, pool, std::span(batch.tokens).first(prefix));
  batch.decode(decoder, 1, false);
  for (std::uint64_t round = 2; round < 5; ++round) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t from = (i + round) % n;
      Decoder::Text &text = batch.texts[i], &other = batch.texts[from];
      const std::size_t held = decoder.valid(i % 3 == 0 ? other.slot : text.slot);
      text.valid = std::min<std::size_t>(held, 1 + uniform64({round, Stream::kMoves}, i, 0) % length);
      if (i % 3 == 0) {
        decoder.copy(other.slot, text.slot, text.valid);
        std::copy_n(other.tokens, text.valid, text.tokens);
        EXPECT_EQ(decoder.valid(text.slot), text.valid);
      }
      text.length = std::max(text.valid, prefix);
      if (i % 4 == 1 && text.length < length)
        text.tokens[text.length++] = static_cast<TokenId>(i % c.d_vocab);
    }
    batch.decode(decoder, round, round == 4);
  }
}

// Plain loops: a full run for every token, one text after another.
std::vector<TokenId> plain_continuation(const Transformer& model, const SamplingConfig& config,
                                        std::vector<TokenId> text, const std::uint64_t* numbers) {
  std::vector<TokenId> said;
  NextTokenLaw law(config, model.config().d_vocab);
  while (said.size() < config.max_tokens && (said.empty() || !config.stops(said.back()))) {
    law.set(plain_logits(model, text));
    text.push_back(law.draw(numbers[said.size()]));
    said.push_back(text.back());
  }
  return said;
}

TEST(ContinueTexts, EqualPlainLoops) {
  for (const char* name : {"llama-b", "gpt2-a", "qwen3-a"}) {
    const Fixture fixture = load_fixture(name);
    const ModelConfig& c = fixture.model.config();
    const std::size_t n = 40, longest = 6;
    std::vector<TokenId> prompts = some_tokens(c, n, longest, 3);
    std::vector<std::uint32_t> lengths(n);
    for (std::size_t i = 0; i < n; ++i) {
      lengths[i] = static_cast<std::uint32_t>(2 + i % 5);
      std::copy_n(prompts.data(), 2, prompts.data() + i * longest);
    }
    for (const bool greedy : {false, true}) {
      const SamplingConfig config{.temperature = 1.5,
                                  .greedy = greedy,
                                  .top_k = 30,
                                  .top_p = 0.95,
                                  .stop = {3, 5, 7},
                                  .max_tokens = 7};
      std::vector<std::uint64_t> numbers(n * config.max_tokens);
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = uniform64({1, Stream::kInputs}, i, 0);
      ThreadPool pool(2);
      const Continuations found =
          continue_texts(fixture.model, config, {prompts, longest, lengths}, numbers, pool);
      for (std::size_t i = 0; i < n; ++i) {
        const TokenId* row = prompts.data() + i * longest;
        EXPECT_EQ(std::vector(found.of(i).begin(), found.of(i).end()),
                  plain_continuation(fixture.model, config, {row, row + lengths[i]},
                                     numbers.data() + i * config.max_tokens));
      }
    }
    ThreadPool pool(1);
    EXPECT_THROW(
        continue_texts(fixture.model, {.greedy = true, .max_tokens = c.n_ctx}, {prompts, longest}, {}, pool),
        InputError);
  }
}

// What llama2.c says at temperature 0: the tokens are those of the full runs in stories_test.cpp.
TEST(ContinueTexts, GreedyStoryIsThatOfFullRuns) {
  const std::string folder = DEEPTAIL_SHARED_DATA "/real/stories260K-hf";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "there is no " << folder;
  const Transformer model = Transformer::load(folder);
  const std::vector<TokenId> bos = {1};
  ThreadPool pool(2);
  const Continuations found = continue_texts(model, {.greedy = true, .max_tokens = 60}, {bos, 1}, {}, pool);
  std::vector<TokenId> text = bos;
  for (const TokenId said : found.of(0)) {
    const auto expected = plain_logits(model, text);
    EXPECT_EQ(said, static_cast<TokenId>(best_of(expected.size(), expected.data()).index));
    text.push_back(said);
  }
  EXPECT_EQ(found.of(0).size(), 60u);
}

TEST(Decoder, RefusesWhatIsNotThere) {
  const Fixture fixture = load_fixture("llama-a");
  ThreadPool pool(1);
  std::vector<TokenId> tokens = {1, 2, 3, 0, 0, 0};
  const std::vector<TokenId> prefix = {1, 2};
  Decoder decoder(fixture.model, 2, 6, pool, prefix);
  const Decoder::Choose end = [](std::size_t, std::size_t, std::span<const float>, std::size_t) {
    return kEndOfText;
  };
  const auto refused = [&](std::vector<Decoder::Text> texts) {
    EXPECT_THROW(decoder.run(texts, end), std::invalid_argument);
  };
  refused({{.slot = 2, .tokens = tokens.data(), .length = 3}});
  refused({{.slot = 0, .tokens = tokens.data(), .length = 0}});
  refused({{.slot = 0, .tokens = tokens.data(), .length = 7}});
  refused({{.slot = 0, .tokens = tokens.data() + 1, .length = 3}});
  refused({{.slot = 0, .tokens = tokens.data(), .length = 3, .valid = 3}});
  refused(
      {{.slot = 0, .tokens = tokens.data(), .length = 3}, {.slot = 0, .tokens = tokens.data(), .length = 3}});
  EXPECT_THROW(decoder.copy(0, 1, 3), std::invalid_argument);
  tokens[2] = 1 << 20;
  std::vector<Decoder::Text> texts = {{.slot = 0, .tokens = tokens.data(), .length = 3}};
  EXPECT_THROW(decoder.run(texts, end), InputError);
}

TEST(Decoder, WhatAChoiceThrowsComesBack) {
  const Fixture fixture = load_fixture("llama-a");
  ThreadPool pool(2);
  std::vector<TokenId> tokens = {1, 2, 3, 0};
  Decoder decoder(fixture.model, 1, 4, pool);
  std::vector<Decoder::Text> texts = {{.slot = 0, .tokens = tokens.data(), .length = 3}};
  EXPECT_THROW(decoder.run(texts,
                           [](std::size_t, std::size_t, std::span<const float>,
                              std::size_t) -> Decoder::Choice { throw std::runtime_error("stopped"); }),
               std::runtime_error);
}

TEST(DecodingFlops, OneTokenAtATimeEqualsAllAtOnce) {
  const ModelConfig c = load_fixture("llama-a").model.config();
  double sum = 0.0;
  for (std::size_t i = 3; i < 11; ++i) sum += decoding_flops(c, i, i + 1);
  EXPECT_NEAR(sum, decoding_flops(c, 3, 11), 1e-9 * sum);
  EXPECT_EQ(decoding_flops(c, 0, 1), forward_flops(c, 1));
  EXPECT_EQ(decoding_flops(c, 4, 4), 0.0);
}

}  // namespace
}  // namespace deeptail
