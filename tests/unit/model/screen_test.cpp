// MarginTest with a Screen decides exactly as the full computation: on ordinary rows and on rows and heads
// made to break bounds, at levels that margins meet exactly.
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <random>
#include <tuple>

#include "model/head/screen.h"
#include "sizes.h"
#include "unit/model/fixture.h"

namespace deeptail {
namespace {

struct Problem {
  Head head;
  AlignedVector<float> rows;  // [n, d_model]
  std::size_t n() const { return rows.size() / head.d_model(); }
  ConstRows all() const { return {rows.data(), head.d_model()}; }
};

Problem random_problem(std::size_t d, std::size_t d_vocab, std::size_t n, unsigned seed,
                       bool with_norm = true) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> w(d * d_vocab), b(d_vocab);
  for (float& v : w) v = normal(engine);
  for (float& v : b) v = 0.3f * normal(engine);
  Problem p;
  p.head.w_u = PackedMatrix(w, d, d_vocab, b);
  if (with_norm) {
    p.head.ln_final = LayerNorm{AlignedVector<float>(d), AlignedVector<float>(d), 1e-5f};
    for (float& v : p.head.ln_final->weight) v = 1.0f + 0.5f * normal(engine);
    for (float& v : p.head.ln_final->bias) v = normal(engine);
  }
  p.rows.resize(n * d);
  for (float& v : p.rows) v = normal(engine);
  return p;
}

// All decisions at the given levels and the event, and the margins themselves, against margins(); returns how many were asked.
std::size_t expect_same_decisions(const Problem& p, const Target& target, const Screen& screen,
                                  const std::vector<float>& levels) {
  ThreadPool pool(1);
  const std::size_t n = p.n();
  std::vector<Margin> exact(n);
  margins(p.head, target, n, p.all(), pool, exact);
  const MarginTest test(p.head, target, {}, &screen);
  const auto scratch = test.make_scratch();
  std::vector<std::uint8_t> out(n);
  std::size_t wrong = 0;
  for (const float level : levels) {
    test.at_least(level, n, p.all(), out, *scratch);
    for (std::size_t i = 0; i < n; ++i) wrong += (out[i] != 0) != (exact[i].value >= level);
  }
  test.event(n, p.all(), out, *scratch);
  for (std::size_t i = 0; i < n; ++i) wrong += (out[i] != 0) != exact[i].event();
  std::vector<Margin> found(n);
  test.margins(n, p.all(), found, *scratch);
  const auto bits = [](const Margin& m) {
    return std::tuple(std::isnan(m.value) ? 0u : std::bit_cast<std::uint32_t>(m.value), m.best_target,
                      m.best_other);
  };
  for (std::size_t i = 0; i < n; ++i) wrong += bits(found[i]) != bits(exact[i]);
  EXPECT_EQ(wrong, 0u);
  return n * (levels.size() + 2);
}

// Levels that margins meet exactly, their neighbours in fp32, and some others.
std::vector<float> telling_levels(const Problem& p, const Target& target, std::size_t step) {
  ThreadPool pool(1);
  std::vector<Margin> exact(p.n());
  margins(p.head, target, p.n(), p.all(), pool, exact);
  std::vector<float> levels = {0.0f, -0.0f, -1.0f, 1.0f, -1e30f, 1e30f, INFINITY, -INFINITY};
  for (std::size_t i = 0; i < p.n(); i += step)
    for (const float toward : {-INFINITY, INFINITY, 0.0f})
      levels.push_back(toward == 0.0f ? exact[i].value : std::nextafter(exact[i].value, toward));
  return levels;
}

class ScreenFixture : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, ScreenFixture, ::testing::ValuesIn(fixture_names()), name_of_param);

TEST_P(ScreenFixture, DecidesAsTheFullComputation) {
  const Fixture fixture = load_fixture(GetParam());
  const ModelConfig& c = fixture.model.config();
  ThreadPool pool(2);
  const auto tokens = some_tokens(c, 200, 8, 21);
  Problem p{fixture.model.head(), residuals_of(fixture.model, {tokens, 8}, pool)};
  const Screen screen(p.head, 100, p.all(), pool);
  for (const Target& target : {Target({7}, p.head), Target({2, 33, 60}, p.head)})
    expect_same_decisions(p, target, screen, telling_levels(p, target, sized(40, 100)));
}

TEST(Screen, ManyRandomRowsAtManyLevels) {
  std::size_t asked = 0;
  for (const unsigned seed : {1u, 2u}) {
    // d odd and not a multiple of anything; the vocabulary ends inside a panel.
    const Problem p = random_problem(seed == 1 ? 67 : 24, 333, sized(500, 150), seed);
    ThreadPool pool(2);
    const Screen calibrated(p.head, sized(300, 100), p.all(), pool), plain(p.head, 0, {}, pool);
    const Target target({static_cast<TokenId>(10 * seed), 200}, p.head);
    const auto levels = telling_levels(p, target, 25);
    asked += expect_same_decisions(p, target, calibrated, levels);
    asked += expect_same_decisions(p, target, plain, levels);
  }
  EXPECT_GT(asked, sized(100'000u, 10'000u));
}

// Without FMA a chain rounds twice as often, and the bounds must know.
TEST(Screen, EveryInstructionSet) {
  const Problem p = random_problem(50, 120, 150, 8);
  ThreadPool pool(1);
  for (std::int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    hwy::SetSupportedTargetsForTest(targets & -targets);
    const Screen screen(p.head, 100, p.all(), pool);
    const Target target({3}, p.head);
    expect_same_decisions(p, target, screen, telling_levels(p, target, sized(10, 50)));
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(Screen, RowsMadeToBreakBounds) {
  Problem p = random_problem(40, 200, 120, 3, false);
  const std::size_t d = 40;
  std::mt19937 engine(4);
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < p.n(); ++i) {
    float* x = p.rows.data() + i * d;
    const float scale =
        std::ldexp(1.0f, static_cast<int>(i % 12) * 20 - 110);  // 2^-110 to 2^110: the bounds overflow
    for (std::size_t k = 0; k < d; ++k) x[k] *= scale;
    if (i % 5 == 0) std::fill_n(x, d, 0.0f);
    if (i % 5 == 1) x[i % d] = 1e4f * scale;  // one coordinate takes all the bits
    if (i % 17 == 4) std::fill_n(x, d, 5e36f);
  }
  ThreadPool pool(1);
  const Screen screen(p.head, 0, {}, pool);
  const Target target({5}, p.head);
  expect_same_decisions(p, target, screen, telling_levels(p, target, 3));
}

// Many columns within an ulp of each other, and exact copies: the screen can rule nothing out.
TEST(Screen, NearTiesInTheVocabulary) {
  Problem p = random_problem(32, 150, 100, 5);
  std::vector<float> w(32 * 150), b(150, 0.125f);
  for (std::size_t k = 0; k < 32; ++k)
    for (std::size_t j = 0; j < 150; ++j) {
      const float base = p.head.w_u.at(k, 0);
      w[k * 150 + j] = j % 3 == 0    ? base
                       : k == j % 32 ? std::nextafter(base, j % 2 == 0 ? 9.0f : -9.0f)
                                     : base;
    }
  p.head.w_u = PackedMatrix(w, 32, 150, b);
  ThreadPool pool(1);
  const Screen screen(p.head, 50, p.all(), pool);
  for (const TokenId id : {0, 1, 149}) {
    const Target target({id}, p.head);
    expect_same_decisions(p, target, screen, telling_levels(p, target, sized(5, 25)));
  }
}

TEST(Screen, HeadsMadeToBreakBounds) {
  for (const float scale : {0.0f, 0x1p-120f, 0x1p120f}) {
    Problem p = random_problem(16, 60, 60, 6);
    std::vector<float> w(16 * 60), b(60, 0.0f);
    for (std::size_t k = 0; k < 16; ++k)
      for (std::size_t j = 0; j < 60; ++j) w[k * 60 + j] = p.head.w_u.at(k, j) * (j % 4 == 0 ? scale : 1.0f);
    b[7] = 1e30f;
    p.head.w_u = PackedMatrix(w, 16, 60, b);
    ThreadPool pool(1);
    const Screen screen(p.head, 30, p.all(), pool);
    for (const TokenId id : {3, 7, 8}) {
      const Target target({id}, p.head);
      expect_same_decisions(p, target, screen, telling_levels(p, target, sized(5, 20)));
    }
  }
}

// What the screen is for: rows that pass, settled with few logits in full.
TEST(Screen, RulesOutAlmostEverything) {
  const Problem p = random_problem(128, 4096, 96, 7);
  ThreadPool pool(2);
  const Screen screen(p.head, 96, p.all(), pool);
  const Target target({11}, p.head);
  std::vector<Margin> exact(p.n());
  margins(p.head, target, p.n(), p.all(), pool, exact);
  const MarginTest test(p.head, target, {}, &screen);
  const auto scratch = test.make_scratch();
  std::vector<std::uint8_t> out(1);
  std::uint64_t logits_in_full = 0;
  for (std::size_t i = 0; i < p.n(); ++i) {
    logits_in_full += test.at_least(exact[i].value, 1, p.all().from(i), out, *scratch);
    EXPECT_EQ(out[0], 1);
  }
  EXPECT_LT(logits_in_full, p.n() * 4096 / 20);
}

TEST(Screen, RefusesActivationsThatAreNotFinite) {
  Problem p = random_problem(16, 60, 10, 6);
  p.rows[5 * 16 + 3] = NAN;
  ThreadPool pool(1);
  EXPECT_THROW(Screen(p.head, 10, p.all(), pool), InputError);
}

}  // namespace
}  // namespace deeptail
