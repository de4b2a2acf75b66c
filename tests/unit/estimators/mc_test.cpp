#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "sizes.h"
#include "subject.h"

namespace deeptail {
namespace {

// Its inputs are numbered from here, far from those that are counted or captured.
constexpr std::uint64_t kFirst = std::uint64_t{1} << 63;

TEST(Mc, CountsHitsAndKeepsTriggers) {
  const Distribution dist = shipped("hex");
  ThreadPool pool(2);
  const std::uint64_t n = sized(2000, 500);
  const Target target({69, 67}, dt_1l().head());
  const Estimate e = mc(dt_1l(), dist, target, {.budget = n, .seed = 3}, pool);

  InputRunner runner(dt_1l(), dist, 3, pool);
  const auto said = runner.run(kFirst, n);
  const auto hits = std::count_if(said.begin(), said.end(), [](TokenId t) { return t == 69 || t == 67; });
  const Interval interval = clopper_pearson(static_cast<std::uint64_t>(hits), n);
  EXPECT_NEAR(std::exp(e.log_p), static_cast<double>(hits) / static_cast<double>(n), 1e-15);
  EXPECT_NEAR(std::exp(e.log_low), interval.low, 1e-15);
  EXPECT_NEAR(std::exp(e.log_high), interval.high, 1e-15);
  EXPECT_EQ(e.status, Status::kOk);
  EXPECT_EQ(e.guarantee, Guarantee::kUnbiased);
  EXPECT_EQ(e.cost.forward, n);
  EXPECT_EQ(e.cost.flops, static_cast<double>(n) * forward_flops(dt_1l().config(), dist.length()));
  ASSERT_EQ(e.triggers.size(), 3u);
  for (const Trigger& t : e.triggers) {
    const auto at = static_cast<std::size_t>(t.sample - kFirst);
    EXPECT_TRUE(said[at] == 69 || said[at] == 67);
    const auto input = runner.input(at);
    EXPECT_EQ(t.tokens, std::vector<TokenId>(input.begin(), input.end()));
  }
}

// Counts take inputs [0, n) of a seed. With the same seed, mc sees others: none of its first 200 is among
// 4000 of them, although all have tokens in common.
TEST(Mc, SharesNoInputWithCounts) {
  const Distribution dist = shipped("hex");
  ThreadPool pool(2);
  const Estimate e = mc(dt_1l(), dist, Target({69, 67}, dt_1l().head()),
                        {.budget = 4000, .seed = 1, .max_triggers = 200}, pool);
  const std::size_t length = dist.length();
  std::vector<TokenId> counted(4000 * length);
  sample_range(dist, 1, 0, pool, counted);
  std::set<std::vector<TokenId>> seen;
  for (std::size_t i = 0; i < 4000; ++i)
    seen.emplace(counted.begin() + static_cast<std::ptrdiff_t>(i * length),
                 counted.begin() + static_cast<std::ptrdiff_t>((i + 1) * length));
  EXPECT_GT(e.triggers.size(), 100u);
  for (const Trigger& t : e.triggers) EXPECT_FALSE(seen.contains(t.tokens)) << t.sample;
}

TEST(Mc, NeverSeenHasAnUpperBound) {
  ThreadPool pool(2);
  const Estimate e = mc(dt_1l(), shipped("hex"), Target({3000}, dt_1l().head()), {.budget = 500}, pool);
  EXPECT_EQ(e.log_p, -INFINITY);
  EXPECT_EQ(e.log_low, -INFINITY);
  EXPECT_NEAR(std::exp(e.log_high), -std::expm1(std::log(0.025) / 500), 1e-15);
  EXPECT_EQ(e.status, Status::kNotReachedUpperBound);
  EXPECT_TRUE(e.triggers.empty());
}

TEST(Mc, StopsWhenToldAndSaysSo) {
  ThreadPool pool(2);
  const Estimate e = mc(dt_1l(), shipped("hex"), Target({69}, dt_1l().head()), {.budget = 1 << 20}, pool,
                        [](const Progress&) { return false; });
  EXPECT_LT(e.cost.forward, 1u << 20);
  ASSERT_EQ(e.warnings.size(), 1u);
  EXPECT_NE(e.warnings[0].find("ended after"), std::string::npos);
  EXPECT_THROW(McConfig{.budget = 0}.validate(), InputError);
}

// One layer, by hand: QKV and output 4 d^2, MLP 2 * d * d_mlp, a multiply and an add each.
TEST(Flops, OneLayerByHand) {
  const ModelConfig c{.model_name = "",
                      .n_layers = 1,
                      .d_model = 4,
                      .n_heads = 2,
                      .d_head = 2,
                      .d_mlp = 16,
                      .n_ctx = 8,
                      .d_vocab = 10,
                      .tokenizer_file = ""};
  const double projections = 2 * 3 * (4 * 16 + 2 * 64);
  const double attention = 2 * 2 * (1 + 2 + 3) * 4;  // scores and sums: positions 1 + 2 + 3, d_attn 4
  EXPECT_EQ(forward_flops(c, 3), projections + attention + 2 * 4 * 10);
}

}  // namespace
}  // namespace deeptail
