// Margins, the event at ties, and the test that stops early: the same decisions as the full computation.
#include "sizes.h"
#include "unit/model/fixture.h"

namespace deeptail {
namespace {

class MarginTestTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, MarginTestTest, ::testing::ValuesIn(fixture_names()), name_of_param);

TEST_P(MarginTestTest, MarginsAndArgmaxFollowTheLogits) {
  const Fixture fixture = load_fixture(GetParam());
  const ModelConfig& c = fixture.model.config();
  const Head& head = fixture.model.head();
  const std::size_t n = 130, length = 6;
  ThreadPool pool(2);
  const auto tokens = some_tokens(c, n, length, 9);
  const auto resid = residuals_of(fixture.model, {tokens, length}, pool);
  AlignedVector<float> all(n * c.d_vocab);
  logits(head, n, {resid.data(), c.d_model}, pool, {all.data(), c.d_vocab});
  std::vector<TokenId> said(n);
  argmax(head, n, {resid.data(), c.d_model}, pool, said);
  const Target target({1, 17, 40}, head);
  std::vector<Margin> found(n);
  margins(head, target, n, {resid.data(), c.d_model}, pool, found);
  for (std::size_t i = 0; i < n; ++i) {
    const float* row = all.data() + i * c.d_vocab;
    EXPECT_EQ(said[i], std::max_element(row, row + c.d_vocab) - row);  // the first of the largest
    float best_target = -INFINITY, best_other = -INFINITY;
    for (std::size_t j = 0; j < c.d_vocab; ++j) {
      const bool in = j == 1 || j == 17 || j == 40;
      (in ? best_target : best_other) = std::max(in ? best_target : best_other, row[j]);
    }
    EXPECT_EQ(found[i].value, best_target - best_other);
    EXPECT_EQ(row[found[i].best_target], best_target);
    EXPECT_EQ(found[i].event(), said[i] == 1 || said[i] == 17 || said[i] == 40);
  }
}

TEST_P(MarginTestTest, DecidesAsTheFullComputation) {
  const Fixture fixture = load_fixture(GetParam());
  const ModelConfig& c = fixture.model.config();
  const Head& head = fixture.model.head();
  const std::size_t n = 200, length = 8;
  ThreadPool pool(2);
  const auto tokens = some_tokens(c, n, length, 21);
  const auto resid = residuals_of(fixture.model, {tokens, length}, pool);
  const ConstRows rows{resid.data(), c.d_model};
  std::vector<TokenId> said(n);
  argmax(head, n, rows, pool, said);
  for (const Target& target : {Target({7}, head), Target({2, 33, 60}, head), Target({said[0]}, head)}) {
    std::vector<Margin> exact(n);
    margins(head, target, n, rows, pool, exact);
    std::vector<float> levels = {-100.0f, -1.0f, 0.0f, 1.0f, 100.0f};
    for (std::size_t i = 0; i < n;
         i += sized(30, 100)) {  // levels that some margin meets exactly, and its neighbours
      levels.push_back(exact[i].value);
      levels.push_back(std::nextafter(exact[i].value, INFINITY));
      levels.push_back(std::nextafter(exact[i].value, -INFINITY));
    }
    for (const auto& winners : {std::vector<TokenId>{}, said}) {
      const MarginTest test(head, target, winners);
      const auto scratch = test.make_scratch();
      std::vector<std::uint8_t> out(n);
      for (const float level : levels) {
        const auto computed = test.at_least(level, n, rows, out, *scratch);
        EXPECT_LE(computed, n * (c.d_vocab + target.ids().size() + winners.size()));
        for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(out[i] != 0, exact[i].value >= level) << level;
      }
      test.event(n, rows, out, *scratch);
      for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(out[i] != 0, exact[i].event());
    }
  }
}

TEST(MarginEvent, SmallerIdWinsATie) {
  EXPECT_TRUE((Margin{0.0f, 3, 7}.event()));
  EXPECT_FALSE((Margin{0.0f, 7, 3}.event()));
  EXPECT_TRUE((Margin{1e-9f, 7, 3}.event()));
  EXPECT_FALSE((Margin{-1e-9f, 3, 7}.event()));
}

// Two equal columns of W_U: their logits tie in every input, and the smaller id must be said.
TEST(MarginEvent, TiesInAModel) {
  const std::string folder = std::string(DEEPTAIL_TEST_DATA) + "/model/rand-1l-64";
  TensorMap tensors = read_tensors(folder);
  const ModelConfig c = Transformer::load(folder).config();
  Tensor &w_u = tensors.at("unembed.W_U"), &b_u = tensors.at("unembed.b_U");
  std::vector<float> w = to_float(w_u), b = to_float(b_u);
  for (std::size_t k = 0; k < c.d_model; ++k) w[k * c.d_vocab + 90] = w[k * c.d_vocab + 20];
  b[20] = b[90] = 50.0f;  // both far above the rest
  w_u.dtype = b_u.dtype = DType::kF32;
  w_u.bytes = std::as_bytes(std::span(w));
  b_u.bytes = std::as_bytes(std::span(b));
  const Transformer model = Transformer::from_tensors(c, tensors, "ties");
  ThreadPool pool(1);
  const auto tokens = some_tokens(c, 50, 5, 2);
  const auto resid = residuals_of(model, {tokens, 5}, pool);
  const ConstRows rows{resid.data(), c.d_model};
  std::vector<TokenId> said(50);
  argmax(model.head(), 50, rows, pool, said);
  for (const TokenId id : said) EXPECT_EQ(id, 20);
  const std::vector<TokenId> winners = {90, 20};
  for (const TokenId id : {20, 90}) {
    const MarginTest test(model.head(), Target({id}, model.head()), winners);
    const auto scratch = test.make_scratch();
    std::vector<std::uint8_t> out(50);
    test.event(50, rows, out, *scratch);
    for (const auto hit : out) EXPECT_EQ(hit != 0, id == 20);
    test.at_least(0.0f, 50, rows, out, *scratch);
    for (const auto hit : out) EXPECT_TRUE(hit);
  }
}

TEST(Target, RefusesWhatMakesNoSense) {
  const Fixture fixture = load_fixture("rand-1l-64");
  const Head& head = fixture.model.head();
  EXPECT_EQ(Target({5, 2, 5}, head).ids(), (std::vector<TokenId>{2, 5}));
  EXPECT_THROW(Target({}, head), InputError);
  EXPECT_THROW(Target({97}, head), InputError);
  EXPECT_THROW(Target({-1}, head), InputError);
  std::vector<TokenId> everything(97);
  for (std::size_t i = 0; i < 97; ++i) everything[i] = static_cast<TokenId>(i);
  EXPECT_THROW(Target(everything, head), InputError);
}

}  // namespace
}  // namespace deeptail
