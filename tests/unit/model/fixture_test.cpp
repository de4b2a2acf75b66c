#include "unit/model/fixture.h"

#include <cmath>

#include "sizes.h"

namespace deeptail {
namespace {

class FixtureTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, FixtureTest, ::testing::ValuesIn(all_fixture_names()), name_of_param);

// Issue's bar: logits to 2e-4, argmax wherever the gap exceeds 1e-3.
TEST_P(FixtureTest, LogitsEqualPyTorch) {
  const Fixture fixture = load_fixture(GetParam());
  const ModelConfig& c = fixture.model.config();
  ThreadPool pool(2);
  double worst = 0;
  for (const FixtureSequence& s : fixture.sequences) {
    const TokenBatch batch{s.tokens, s.tokens.size()};
    const auto resid = residuals_of(fixture.model, batch, pool);
    for (std::size_t i = 0; i < c.d_model; ++i) EXPECT_NEAR(resid[i], s.resid_post[i], 2e-4);
    AlignedVector<float> found(c.d_vocab);
    logits(fixture.model.head(), 1, {resid.data(), c.d_model}, pool, {found.data(), c.d_vocab});
    for (std::size_t i = 0; i < c.d_vocab; ++i) worst = std::max(worst, std::abs(found[i] - s.logits[i]));

    std::vector<double> sorted = s.logits;
    std::nth_element(sorted.begin(), sorted.begin() + 1, sorted.end(), std::greater<>());
    TokenId said = -1;
    argmax(fixture.model.head(), 1, {resid.data(), c.d_model}, pool, {&said, 1});
    const double gap = *std::max_element(s.logits.begin(), s.logits.end()) - sorted[1];
    if (gap > 1e-3) {
      EXPECT_EQ(said, s.argmax);
    }

    Margin margin;
    margins(fixture.model.head(), Target(s.targets, fixture.model.head()), 1, {resid.data(), c.d_model}, pool,
            {&margin, 1});
    EXPECT_NEAR(margin.value, s.margin, 4e-4);
  }
  EXPECT_LE(worst, 2e-4);
  RecordProperty("max_logit_error", std::to_string(worst));
}

TEST_P(FixtureTest, GradientsEqualPyTorch) {
  const Fixture fixture = load_fixture(GetParam());
  const GradientEngine engine(fixture.model);
  ThreadPool pool(2);
  std::size_t checked = 0;
  for (const FixtureSequence& s : fixture.sequences) {
    const TokenBatch batch{s.tokens, s.tokens.size()};
    const auto check = [&](const Target& target, Objective objective, double value,
                           const std::vector<double>& grad) {
      if (grad.empty()) return;
      const GradientResult found = engine.run(batch, target, objective, pool);
      EXPECT_NEAR(found.values[0], value, 4e-4);
      ASSERT_EQ(found.gradients.size(), grad.size());
      double norm = 0, error = 0;  // relative in the 2-norm, and no element far off
      for (std::size_t i = 0; i < grad.size(); ++i) {
        norm += grad[i] * grad[i];
        error += std::pow(found.gradients[i] - grad[i], 2);
      }
      EXPECT_LE(std::sqrt(error), 1e-3 * std::sqrt(norm));
      for (std::size_t i = 0; i < grad.size(); ++i)
        EXPECT_NEAR(found.gradients[i], grad[i], 1e-3 * std::abs(grad[i]) + 1e-5 * std::sqrt(norm));
      ++checked;
    };
    check(Target({s.target}, fixture.model.head()), Objective::kTargetLogit, s.target_logit,
          s.grad_target_logit);
    check(Target(s.targets, fixture.model.head()), Objective::kMargin, s.margin, s.grad_margin);
  }
  EXPECT_GE(checked, 4u);
}

// Bit for bit: any thread count, any batch, alone or among others, with and without the table.
TEST_P(FixtureTest, SameBitsForThreadsBatchesAndTable) {
  const Fixture fixture = load_fixture(GetParam());
  const ModelConfig& c = fixture.model.config();
  const std::size_t length = std::min<std::size_t>(c.n_ctx, 13), n = sized(205, 100);
  const auto tokens = some_tokens(c, n, length, 5);
  ThreadPool one(1);
  const auto expected = residuals_of(fixture.model, {tokens, length}, one);
  AlignedVector<float> expected_logits(n * c.d_vocab);
  logits(fixture.model.head(), n, {expected.data(), c.d_model}, one, {expected_logits.data(), c.d_vocab});
  for (const std::size_t threads : {2, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(residuals_of(fixture.model, {tokens, length}, pool), expected);
    AlignedVector<float> found(n * c.d_vocab);
    logits(fixture.model.head(), n, {expected.data(), c.d_model}, pool, {found.data(), c.d_vocab});
    EXPECT_EQ(found, expected_logits);
  }
  for (const std::size_t i : {std::size_t{0}, std::size_t{17}, n - 1}) {
    const auto alone = residuals_of(fixture.model, {{tokens.data() + i * length, length}, length}, one);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(),
                           expected.begin() + static_cast<std::ptrdiff_t>(i * c.d_model)));
  }
  std::vector<std::vector<TokenId>> support(length);
  for (std::size_t i = 0; i < n * length; ++i)
    if (i % 3 != 0) support[i % length].push_back(tokens[i]);  // some pairs are left out
  const FirstLayerTable table(fixture.model, support, one);
  // One layer whose keys turn has no rows that stand alone.
  EXPECT_EQ(table.bytes() > 0, c.n_layers > 1 || c.arch.keys_are_still());
  EXPECT_LE(table.bytes(), FirstLayerTable::bytes_of(c, support));
  EXPECT_EQ(residuals_of(fixture.model, {tokens, length}, one, &table), expected);
}

TEST(OldTransformerLensFile, PthWithBuffersLoads) {
  const Fixture fixture = load_fixture("rand-1l-64");
  const Transformer pth = Transformer::load(std::string(DEEPTAIL_TEST_DATA) + "/model/rand-1l-64-pth");
  EXPECT_EQ(pth.config().d_model, 64u);
  EXPECT_EQ(pth.config().eps, 1e-5f);
  ThreadPool pool(1);
  const auto tokens = some_tokens(pth.config(), 4, 10, 1);
  EXPECT_EQ(residuals_of(pth, {tokens, 10}, pool), residuals_of(fixture.model, {tokens, 10}, pool));
}

TEST(CheckTokens, NamesWhatIsWrong) {
  const Fixture fixture = load_fixture("rand-1l-64");
  const std::vector<TokenId> bad = {0, 97}, fine = {0, 96}, negative = {-1};
  EXPECT_NO_THROW(check_tokens(fixture.model.config(), {fine, 2}));
  EXPECT_THROW(check_tokens(fixture.model.config(), {bad, 2}), InputError);
  EXPECT_THROW(check_tokens(fixture.model.config(), {negative, 1}), InputError);
  EXPECT_THROW(check_tokens(fixture.model.config(), {{}, 0}), InputError);
  const std::vector<TokenId> longer(41, 0);
  EXPECT_THROW(check_tokens(fixture.model.config(), {longer, 41}), InputError);
}

}  // namespace
}  // namespace deeptail
