#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "sizes.h"
#include "subject.h"
#include "unit/chain_law.h"
#include "unit/estimators/counting_model.h"

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

// As NextToken, but known only by its scores.
class Scored final : public Event {
 public:
  explicit Scored(const Target& target) : next_(target) {}
  std::string text() const override { return "scored"; }
  std::unique_ptr<Scorer> scorer(const Transformer& model, const InputLaw& law, const ScorerOptions& options,
                                 ThreadPool& pool) const override {
    return next_.scorer(model, law, options, pool);
  }
  ScorerBytes bytes(const ModelConfig& config, const InputLaw& law) const override {
    return next_.bytes(config, law);
  }

 private:
  NextToken next_;
};

TEST(Mc, ByScoresAsByWhatIsSaid) {
  const TokenTables law(shipped("hex"));
  const Target target({69, 67}, dt_1l().head());
  ThreadPool pool(2);
  const McConfig config{.budget = sized(2000, 500), .seed = 3};
  const Estimate said = mc(dt_1l(), *law.tables(), target, config, pool);
  const Estimate next = mc(dt_1l(), law, NextToken(target), config, pool);
  const Estimate scored = mc(dt_1l(), law, Scored(target), config, pool);
  EXPECT_EQ(next.log_p, said.log_p);
  EXPECT_EQ(scored.log_p, said.log_p);
  EXPECT_EQ(scored.log_high, said.log_high);
  EXPECT_EQ(scored.cost.forward, said.cost.forward);
  EXPECT_EQ(scored.cost.flops, said.cost.flops);
  EXPECT_EQ(scored.cost.forward_equivalents, said.cost.forward_equivalents);
  EXPECT_TRUE(scored.target.empty());
  ASSERT_EQ(scored.triggers.size(), said.triggers.size());
  for (std::size_t i = 0; i < said.triggers.size(); ++i) {
    EXPECT_EQ(next.triggers[i].tokens, said.triggers[i].tokens);
    EXPECT_EQ(scored.triggers[i].sample, said.triggers[i].sample);
    EXPECT_EQ(scored.triggers[i].tokens, said.triggers[i].tokens);
    EXPECT_GE(scored.triggers[i].margin, 0.0);
  }
}

// Inputs of unequal lengths, and an answer that is drawn: a die with four faces shows 3, and the input is as
// short as it can be. The two are independent: (1/4) kStop.
TEST(Mc, AnyLawAndAnyEvent) {
  const ChainLaw law(13, CountingModel::kVocab);
  const CountingModel toy(12, {0.25, 0.25, 0.25, 0.25}, 36);  // any model
  const CallbackEvent event(
      "short and 3",
      [](const EventInputs& in, std::span<double> out) {
        for (std::size_t i = 0; i < out.size(); ++i)
          out[i] = in.inputs.length_of(i) == 2 && in.numbers[i] >> 62 == 3 ? 0.0 : -1.0;
      },
      1);
  const std::uint64_t n = sized(40000, 4000);
  std::string first;
  for (const std::size_t threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    Estimate e = mc(toy.model(), law, event, {.budget = n, .seed = 5}, pool);
    const double truth = 0.25 * ChainLaw::kStop;
    const double error = std::sqrt(truth * (1.0 - truth) / static_cast<double>(n));
    EXPECT_NEAR(std::exp(e.log_p), truth, 4.0 * error);  // a fixed seed; false alarm 6e-5
    for (const Trigger& t : e.triggers) EXPECT_EQ(t.tokens.size(), 2u);
    EXPECT_EQ(e.cost.forward, n);
    EXPECT_LT(e.cost.forward_equivalents, static_cast<double>(n));  // most inputs are shorter
    e.cost.seconds = 0.0;
    if (first.empty()) first = to_json(e);
    EXPECT_EQ(to_json(e), first) << threads << " threads";
  }
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
