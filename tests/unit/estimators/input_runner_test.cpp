#include <gtest/gtest.h>

#include "sizes.h"
#include "subject.h"

namespace deeptail {
namespace {

TEST(InputRunner, SaysWhatTheModelSays) {
  const Distribution dist = shipped("caps");
  ThreadPool pool(2);
  InputRunner runner(dt_1l(), dist, 5, pool);
  const auto said = runner.run(1000, 50);
  for (std::size_t i = 0; i < said.size(); ++i) {
    std::vector<TokenId> tokens(dist.length());
    sample(dist, 5, 1000 + i, tokens);
    EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), runner.input(i).begin()));
    const std::size_t d = dt_1l().config().d_model;
    AlignedVector<float> resid(d), all(dt_1l().config().d_vocab);
    final_residuals(dt_1l(), {tokens, tokens.size()}, pool,
                    {resid.data(), d});  // without the first layer's table
    logits(dt_1l().head(), 1, {resid.data(), d}, pool, {all.data(), all.size()});
    EXPECT_EQ(static_cast<std::size_t>(said[i]), best_of(all.size(), all.data()).index);
  }
}

TEST(InputRunner, SameForAnyThreadsAndBatches) {
  const Distribution dist = shipped("hex");
  std::vector<TokenId> expected;
  for (const std::size_t threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    InputRunner runner(dt_1l(), dist, 1, pool);
    std::vector<TokenId> said;
    if (threads == 2) {
      for (const auto& [first, n] : {std::pair{0, 7}, {7, 600}, {607, 393}}) {
        const auto part = runner.run(static_cast<std::uint64_t>(first), static_cast<std::size_t>(n));
        said.insert(said.end(), part.begin(), part.end());
      }
    } else {
      const auto whole = runner.run(0, 1000);
      said.assign(whole.begin(), whole.end());
    }
    if (expected.empty()) expected = said;
    EXPECT_EQ(said, expected) << threads;
  }
}

TEST(InputRunner, BatchesCoverTheRangeOrStop) {
  const Distribution dist = shipped("icl");
  ThreadPool pool(2);
  InputRunner runner(dt_1l(), dist, 1, pool);
  const std::uint64_t n = sized(3000, 1000);
  std::uint64_t next = 100;
  const auto visit = [&](std::uint64_t first, std::span<const TokenId> said) {
    EXPECT_EQ(first, next);
    next += said.size();
  };
  EXPECT_EQ(for_each_batch(runner, 100, n, visit), n);
  EXPECT_EQ(next, 100 + n);
  next = 0;
  const std::uint64_t done =
      for_each_batch(runner, 0, 1 << 30, visit, [](const Progress& p) { return p.done < 1000; });
  EXPECT_EQ(done, next);
  EXPECT_GE(done, 1000u);
  EXPECT_LT(done, 40000u);
}

}  // namespace
}  // namespace deeptail
