// Re-scored sequences equal a full run to the bit, through long chains of accepted and rejected changes.
#include <random>

#include "sizes.h"
#include "unit/model/fixture.h"

namespace deeptail {
namespace {

class RescorerTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, RescorerTest, ::testing::ValuesIn(all_fixture_names()), name_of_param);

TEST_P(RescorerTest, EqualsAFullRunToTheBit) {
  const Fixture fixture = load_fixture(GetParam());
  const ModelConfig& c = fixture.model.config();
  const std::size_t n = sized(101, 41), length = std::min<std::size_t>(c.n_ctx, 11), d = c.d_model;
  std::vector<TokenId> current = some_tokens(c, n, length, 4);
  for (const std::size_t threads : {1, 7}) {
    ThreadPool pool(threads);
    Rescorer rescorer(fixture.model, n, length, pool);
    AlignedVector<float> first(n * d);
    rescorer.reset({current, length}, {first.data(), d});
    EXPECT_EQ(first, residuals_of(fixture.model, {current, length}, pool));

    std::mt19937 engine(7);
    for (int step = 0; step < sized(5, 3); ++step) {
      std::vector<TokenId> proposed = current;
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t changes = engine() % 3; changes > 0; --changes)  // none, one or two positions
          proposed[i * length + engine() % length] = static_cast<TokenId>(engine() % c.d_vocab);
      std::vector<Rescorer::Proposal> proposals;
      for (std::size_t i = 0; i < n; ++i)
        proposals.push_back({n - 1 - i, proposed.data() + (n - 1 - i) * length});
      const auto expected = residuals_of(fixture.model, {proposed, length}, pool);
      rescorer.propose(proposals, [&](std::size_t at, std::size_t count, ConstRows resid,
                                      std::span<std::uint8_t> accept, std::size_t) {
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t slot = proposals[at + i].slot;
          EXPECT_TRUE(std::equal(resid.row(i), resid.row(i) + d, expected.data() + slot * d))
              << "slot " << slot;
          accept[i] = (slot + static_cast<std::size_t>(step)) % 2;
        }
      });
      for (std::size_t i = 0; i < n; ++i) {
        if ((i + static_cast<std::size_t>(step)) % 2 != 0)
          std::copy_n(proposed.data() + i * length, length, current.data() + i * length);
        EXPECT_TRUE(
            std::equal(rescorer.tokens(i).begin(), rescorer.tokens(i).end(), current.data() + i * length));
      }
      rescorer.copy_slot(3, 5);
      std::copy_n(current.data() + 3 * length, length, current.data() + 5 * length);
    }
  }
}

TEST_P(RescorerTest, ResamplesInPlace) {
  const Fixture fixture = load_fixture(GetParam());
  const ModelConfig& c = fixture.model.config();
  const std::size_t n = 12, length = std::min<std::size_t>(c.n_ctx, 6), d = c.d_model;
  const auto tokens = some_tokens(c, n, length, 8);
  ThreadPool pool(2);
  const auto alone = residuals_of(fixture.model, {tokens, length}, pool);
  const std::vector<std::vector<std::uint32_t>> cases = {
      {0, 0, 1, 1, 5, 8, 8, 8, 9, 9, 10, 11},  // to the left and right
      {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
      {11, 11, 11},
      {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
      {}};
  for (const auto& parents : cases) {
    Rescorer rescorer(fixture.model, n, length, pool);
    rescorer.reset({tokens, length});
    rescorer.resample(parents);
    std::vector<Rescorer::Proposal> same;
    for (std::size_t i = 0; i < parents.size(); ++i) same.push_back({i, rescorer.tokens(i).data()});
    rescorer.propose(same, [&](std::size_t at, std::size_t count, ConstRows resid,
                               std::span<std::uint8_t> accept, std::size_t) {
      for (std::size_t i = 0; i < count; ++i) {
        accept[i] = 0;
        EXPECT_TRUE(std::equal(resid.row(i), resid.row(i) + d, alone.data() + parents[at + i] * d)) << at + i;
      }
    });
  }
  Rescorer rescorer(fixture.model, n, length, pool);
  rescorer.reset({tokens, length});
  const std::vector<std::uint32_t> falls = {1, 0}, many(n + 1, 0);
  EXPECT_THROW(rescorer.resample(falls), std::invalid_argument);
  EXPECT_THROW(rescorer.resample(many), std::invalid_argument);
}

// What all sequences begin with is computed and kept once, and changes no bit.
TEST_P(RescorerTest, SharedPrefixEqualsEachSequenceAlone) {
  const Fixture fixture = load_fixture(GetParam());
  const ModelConfig& c = fixture.model.config();
  const std::size_t n = sized(53, 21), longest = std::min<std::size_t>(c.n_ctx, 9), shared = 4, d = c.d_model;
  std::vector<TokenId> tokens = some_tokens(c, n, longest, 6);
  std::vector<std::uint32_t> lengths(n);
  std::mt19937 engine(9);
  for (std::size_t i = 0; i < n; ++i) {
    std::copy_n(tokens.data(), shared, tokens.data() + i * longest);
    lengths[i] = static_cast<std::uint32_t>(shared + 1 + engine() % (longest - shared));
  }
  ThreadPool pool(2);
  const auto alone = [&](const TokenId* row, std::size_t length) {
    ThreadPool one(1);  // of its own: workers call this side by side
    return residuals_of(fixture.model, {{row, length}, length}, one);
  };
  const auto together = residuals_of(fixture.model, {tokens, longest, lengths}, pool);
  Rescorer rescorer(fixture.model, n, longest, pool, std::span(tokens).first(shared));
  AlignedVector<float> first(n * d);
  rescorer.reset({tokens, longest, lengths}, {first.data(), d});
  EXPECT_EQ(first, together);
  for (std::size_t i = 0; i < n; ++i)
    EXPECT_TRUE(std::equal(&first[i * d], &first[i * d] + d, alone(&tokens[i * longest], lengths[i]).data()));
  for (int step = 0; step < 3; ++step) {
    std::vector<TokenId> proposed = tokens;
    std::vector<Rescorer::Proposal> proposals;
    for (std::size_t i = 0; i < n; ++i) {
      proposed[i * longest + shared + engine() % (longest - shared)] =
          static_cast<TokenId>(engine() % c.d_vocab);
      proposals.push_back({i, &proposed[i * longest], shared + 1 + engine() % (longest - shared)});
    }
    rescorer.propose(proposals, [&](std::size_t at, std::size_t count, ConstRows resid,
                                    std::span<std::uint8_t> accept, std::size_t) {
      for (std::size_t i = 0; i < count; ++i) {
        const Rescorer::Proposal& p = proposals[at + i];
        EXPECT_TRUE(std::equal(resid.row(i), resid.row(i) + d, alone(p.tokens, p.length).data())) << p.slot;
        accept[i] = p.slot % 3 != 0;
      }
    });
    for (std::size_t i = 0; i < n; ++i)
      if (i % 3 != 0) std::copy_n(&proposed[i * longest], longest, &tokens[i * longest]);
    rescorer.copy_slot(1, 3);
    std::copy_n(&tokens[longest], longest, &tokens[3 * longest]);
  }
  EXPECT_EQ(Rescorer::bytes_per_slot(c, longest, shared) < Rescorer::bytes_per_slot(c, longest),
            c.n_layers > 1 || !c.arch.keys_are_still());
}

TEST(SharedPrefix, MustBeThere) {
  const Fixture fixture = load_fixture("llama-a");
  ThreadPool pool(1);
  const std::vector<TokenId> prefix = {1, 2}, fine = {1, 2, 3}, other = {1, 3, 3};
  Rescorer rescorer(fixture.model, 1, 3, pool, prefix);
  EXPECT_THROW(rescorer.reset({other, 3}), std::invalid_argument);
  rescorer.reset({fine, 3});
  const Rescorer::Proposal changed{0, other.data()}, ended{0, fine.data(), 2};
  for (const Rescorer::Proposal& p : {changed, ended})
    EXPECT_THROW(
        rescorer.propose({&p, 1}, [](std::size_t, std::size_t, ConstRows, std::span<std::uint8_t> accept,
                                     std::size_t) { accept[0] = 0; }),
        std::invalid_argument);
}

// Sequences of many lengths in one batch, growing and shrinking, against each one alone.
TEST_P(RescorerTest, UnequalLengthsEqualEachSequenceAlone) {
  const Fixture fixture = load_fixture(GetParam());
  const ModelConfig& c = fixture.model.config();
  const std::size_t n = sized(61, 21), longest = std::min<std::size_t>(c.n_ctx, 9), d = c.d_model;
  std::vector<TokenId> tokens = some_tokens(c, n, longest, 5);
  std::vector<std::uint32_t> lengths(n);
  std::mt19937 engine(8);
  for (std::uint32_t& length : lengths) length = static_cast<std::uint32_t>(1 + engine() % longest);
  const auto alone = [&](const TokenId* row, std::size_t length) {
    ThreadPool one(1);  // of its own: workers call this side by side
    return residuals_of(fixture.model, {{row, length}, length}, one);
  };
  for (const std::size_t threads : {1, 2, 7}) {
    if (sized(false, true) && threads != 7) continue;
    ThreadPool pool(threads);
    std::vector<TokenId> current = tokens;
    std::vector<std::uint32_t> now = lengths;
    AlignedVector<float> first(n * d);
    Rescorer rescorer(fixture.model, n, longest, pool);
    rescorer.reset({current, longest, now}, {first.data(), d});
    EXPECT_EQ(first, residuals_of(fixture.model, {current, longest, now}, pool));
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_TRUE(std::equal(first.data() + i * d, first.data() + (i + 1) * d,
                             alone(current.data() + i * longest, now[i]).data()));
    for (int step = 0; step < sized(4, 2); ++step) {
      std::vector<TokenId> proposed = current;
      std::vector<Rescorer::Proposal> proposals;
      for (std::size_t i = 0; i < n; ++i) {
        if (engine() % 2 != 0)
          proposed[i * longest + engine() % longest] = static_cast<TokenId>(engine() % c.d_vocab);
        proposals.push_back({i, proposed.data() + i * longest, 1 + engine() % longest});
      }
      rescorer.propose(proposals, [&](std::size_t at, std::size_t count, ConstRows resid,
                                      std::span<std::uint8_t> accept, std::size_t) {
        for (std::size_t i = 0; i < count; ++i) {
          const Rescorer::Proposal& p = proposals[at + i];
          EXPECT_TRUE(std::equal(resid.row(i), resid.row(i) + d, alone(p.tokens, p.length).data()))
              << "slot " << p.slot << ", length " << p.length;
          accept[i] = (p.slot + static_cast<std::size_t>(step)) % 2;
        }
      });
      for (std::size_t i = 0; i < n; ++i) {
        if ((i + static_cast<std::size_t>(step)) % 2 != 0) {
          std::copy_n(proposed.data() + i * longest, longest, current.data() + i * longest);
          now[i] = static_cast<std::uint32_t>(proposals[i].length);
        }
        ASSERT_EQ(rescorer.tokens(i).size(), now[i]);
        EXPECT_TRUE(
            std::equal(rescorer.tokens(i).begin(), rescorer.tokens(i).end(), current.data() + i * longest));
      }
      rescorer.copy_slot(3, 5);
      std::copy_n(current.data() + 3 * longest, longest, current.data() + 5 * longest);
      now[5] = now[3];
    }
  }
}

}  // namespace
}  // namespace deeptail
