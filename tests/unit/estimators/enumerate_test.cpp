#include "estimators/enumerate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "counting_model.h"
#include "deeptail/methods.h"

namespace deeptail {
namespace {

__extension__ typedef unsigned __int128 Wide;

Distribution law_of(std::vector<double> probabilities, std::size_t n_free) {
  Distribution dist;
  dist.name = "few";
  dist.d_vocab = CountingModel::kVocab;
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < probabilities.size(); ++i) ids.push_back(static_cast<TokenId>(i));
  dist.tables = {TokenTable("few", ids, probabilities, "few"), TokenTable("end", {4}, {1.0}, "few")};
  dist.positions.assign(n_free, 0);
  dist.positions.push_back(1);
  return dist;
}

// The event is what `hit` says of an input.
template <class Hit>
CallbackEvent event_of(Hit hit) {
  return {"hit", [hit](const EventInputs& asked, std::span<double> out) {
            for (std::size_t i = 0; i < out.size(); ++i) out[i] = hit(asked.inputs.sequence(i)) ? 1.0 : -1.0;
          }};
}

template <class Hit>
Estimate count(const Distribution& dist, Hit hit, std::size_t threads = 1, const Watch& watch = {}) {
  static const CountingModel toy(24, {0.7, 0.2, 0.08, 0.02}, 9);
  ThreadPool pool(threads);
  return count_all_inputs(toy.model(), TokenTables(dist), event_of(hit), {.method = "mc"}, pool, watch);
}

std::size_t count_of(std::span<const TokenId> tokens, TokenId id) {
  return static_cast<std::size_t>(std::count(tokens.begin(), tokens.end(), id));
}

TEST(Enumerate, KnowsHowManyInputsThereAre) {
  EXPECT_EQ(few_inputs(TokenTables(law_of({0.5, 0.25, 0.25}, 4)), 81), 81u);
  EXPECT_EQ(few_inputs(TokenTables(law_of({0.5, 0.25, 0.25}, 4)), 80), 0u);
  EXPECT_EQ(few_inputs(TokenTables(law_of({0.5, 0.5}, 0)), 1), 1u);
  const auto most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(few_inputs(TokenTables(law_of({0.5, 0.5}, 63)), most), std::uint64_t{1} << 63);
  EXPECT_EQ(few_inputs(TokenTables(law_of({0.5, 0.5}, 64)), most), 0u);
}

TEST(Enumerate, GivesTheProbabilityOfAModelsNextToken) {
  const CountingModel toy(5, {0.7, 0.2, 0.08, 0.02}, 9);
  Estimate first;
  for (const std::size_t threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    const Estimate e = count_all_inputs(toy.model(), TokenTables(toy.dist()), NextToken(toy.target()),
                                        {.method = "tokensplit", .seed = 5}, pool);
    EXPECT_NEAR(std::exp(e.log_p), toy.truth(), 1e-13 * toy.truth());
    EXPECT_EQ(e.guarantee, Guarantee::kExact);
    EXPECT_EQ(e.status, Status::kOk);
    EXPECT_EQ(e.log_low, e.log_p);
    EXPECT_EQ(e.log_high, e.log_p);
    EXPECT_EQ(e.cost.forward, 1024u);
    EXPECT_EQ(e.target, toy.target().ids());
    EXPECT_EQ(e.seed, 5u);
    ASSERT_EQ(e.triggers.size(), 3u);
    for (const Trigger& t : e.triggers) {
      TokenId sum = 0;
      for (const TokenId token : t.tokens) sum += token == CountingModel::kEnd ? 0 : token;
      EXPECT_GE(sum, 9);
    }
    if (threads > 1) {
      EXPECT_EQ(to_json(e).substr(0, 100), to_json(first).substr(0, 100));
    }
    first = e;
  }
}

// Two positions: products of 2^-64 units fit into 128 bits.
TEST(Enumerate, LosesNoDigits) {
  const Distribution dist = law_of({1.0 / 3.0, 0.1, 1e-9, 1.0 - 1.0 / 3.0 - 0.1 - 1e-9}, 2);
  const TokenTable& table = dist.table(0);
  std::vector<Wide> units;
  for (std::size_t i = 0; i < 4; ++i)
    units.push_back(Wide{table.last_unit(i)} - (i == 0 ? Wide{0} - 1 : Wide{table.last_unit(i - 1)}));
  for (unsigned subset = 1; subset < 0xffff; subset += 97) {
    const auto hit = [&](std::span<const TokenId> t) { return (subset >> (4 * t[0] + t[1]) & 1) != 0; };
    Wide sum = 0;
    for (std::size_t a = 0; a < 4; ++a)
      for (std::size_t b = 0; b < 4; ++b)
        if (subset >> (4 * a + b) & 1) sum += units[a] * units[b];
    const double p = std::ldexp(static_cast<double>(sum), -128);
    const Estimate e = count(dist, hit);
    EXPECT_NEAR(e.log_p, std::log(p), 3e-16 * std::max(1.0, std::abs(std::log(p)))) << subset;
  }
}

TEST(Enumerate, KeepsWhatIsMissingFromOne) {
  const Distribution dist = law_of({0x1p-5, 1.0 - 0x1p-5}, 4);
  const Estimate e = count(dist, [](std::span<const TokenId> t) { return count_of(t, 0) < 4; });
  EXPECT_DOUBLE_EQ(e.log_p, std::log1p(-0x1p-20));
  EXPECT_EQ(count(dist, [](auto) { return true; }).log_p, 0.0);
  const Estimate never = count(dist, [](auto) { return false; });
  EXPECT_EQ(never.log_p, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(never.log_high, never.log_p);
  EXPECT_EQ(never.status, Status::kOk);
}

TEST(Enumerate, ShowsTheLikeliestInputs) {
  const Estimate e =
      count(law_of({0.6, 0.3, 0.1}, 3), [](std::span<const TokenId> t) { return t[0] == 2 || t[2] == 1; });
  ASSERT_EQ(e.triggers.size(), 3u);
  EXPECT_EQ(e.triggers[0].tokens, (std::vector<TokenId>{0, 0, 1, 4}));
  EXPECT_EQ(e.triggers[1].tokens, (std::vector<TokenId>{0, 1, 1, 4}));
  EXPECT_EQ(e.triggers[0].sample, 1u);
}

TEST(Enumerate, StoppedItTellsWhatTheRestLeavesOpen) {
  const Distribution dist = law_of({0.25, 0.75}, 13);
  const auto hit = [](std::span<const TokenId> t) { return count_of(t, 0) >= 7; };
  const Estimate whole = count(dist, hit);
  const Estimate e = count(dist, hit, 1, [](const Progress&) { return false; });
  EXPECT_EQ(e.guarantee, Guarantee::kConsistent);
  EXPECT_EQ(e.cost.forward, 4096u);
  EXPECT_LT(e.log_low, whole.log_p);
  EXPECT_GT(e.log_high, whole.log_p);
  EXPECT_LE(e.log_low, e.log_p);
  EXPECT_LE(e.log_p, e.log_high);
  ASSERT_EQ(e.warnings.size(), 1u);
}

TEST(Enumerate, IsWhatMcAndTokensplitDoWhereItCostsNoMore) {
  const CountingModel toy(5, {0.7, 0.2, 0.08, 0.02}, 9);
  ThreadPool pool(2);
  const TokenTables law(toy.dist());
  const NextToken event(toy.target());
  const Question question(toy.model(), law, event);
  for (const char* name : {"mc", "tokensplit"}) {
    const Estimate e = run_method(make_method(name, {{"budget", "1024", "budget"}}), question, 3, pool);
    EXPECT_EQ(e.guarantee, Guarantee::kExact) << name;
    EXPECT_EQ(e.method, name);
    EXPECT_NEAR(std::exp(e.log_p), toy.truth(), 1e-13 * toy.truth());
    const Estimate less = run_method(make_method(name, {{"budget", "1023", "budget"}}), question, 3, pool);
    EXPECT_NE(less.guarantee, Guarantee::kExact) << name;
    EXPECT_LT(less.log_low, less.log_high);
  }
}

}  // namespace
}  // namespace deeptail
