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
