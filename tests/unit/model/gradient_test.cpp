// Gradients against finite differences, and their independence of threads and batches.
#include "unit/model/fixture.h"

namespace deeptail {
namespace {

class DifferenceTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, DifferenceTest,
                         ::testing::Values("rand-1l-64", "rand-2l-96-no-bias", "rand-4l-64"), name_of_param);

class GradientTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, GradientTest,
                         ::testing::Values("rand-1l-64", "rand-2l-96-no-bias", "rand-4l-64", "gpt2-b",
                                           "gpt_neo-b", "gpt_neox-a", "gpt_neox-b", "llama-a", "llama-b",
                                           "mistral-b", "qwen2-b", "qwen3-a", "qwen3-b"),
                         name_of_param);

TEST_P(DifferenceTest, EqualFiniteDifferences) {
  const std::string folder = std::string(DEEPTAIL_TEST_DATA) + "/model/" + GetParam();
  const Transformer model = Transformer::load(folder);
  const ModelConfig& c = model.config();
  TensorMap tensors = read_tensors(folder);
  Tensor& w_e = tensors.at("embed.W_E");
  std::vector<float> values = to_float(w_e);
  w_e.dtype = DType::kF32;
  w_e.bytes = std::as_bytes(std::span(values));

  const std::vector<TokenId> tokens = {3, 8, 1, 4, 9};  // all different
  const Target target({2, 11}, model.head());
  ThreadPool pool(1);
  const auto exact = GradientEngine(model).run({tokens, 5}, target, Objective::kMargin, pool);
  const auto margin_now = [&] {
    const Transformer moved = Transformer::from_tensors(c, tensors, "moved");
    const auto resid = residuals_of(moved, {tokens, 5}, pool);
    Margin margin;
    margins(moved.head(), target, 1, {resid.data(), c.d_model}, pool, {&margin, 1});
    return static_cast<double>(margin.value);
  };
  for (std::size_t position = 0; position < tokens.size(); ++position)
    for (const std::size_t k : {std::size_t{0}, std::size_t{7}, c.d_model - 1}) {
      float& x = values[static_cast<std::size_t>(tokens[position]) * c.d_model + k];
      const float before = x, step = 1.0f / 128;
      x = before + step;
      const double up = margin_now();
      x = before - step;
      const double down = margin_now();
      x = before;
      const double slope = (up - down) / (2 * step);
      EXPECT_NEAR(exact.gradients[position * c.d_model + k], slope, 0.02 * std::abs(slope) + 2e-3);
    }
}

TEST_P(GradientTest, SameBitsForThreadsAndBatches) {
  const Fixture fixture = load_fixture(GetParam());
  const ModelConfig& c = fixture.model.config();
  const GradientEngine engine(fixture.model);
  const std::size_t n = 19, length = 7;
  const auto tokens = some_tokens(c, n, length, 3);
  const Target target({5}, fixture.model.head());
  ThreadPool one(1);
  const auto expected = engine.run({tokens, length}, target, Objective::kTargetLogit, one);
  for (const std::size_t threads : {2, 7}) {
    ThreadPool pool(threads);
    const auto found = engine.run({tokens, length}, target, Objective::kTargetLogit, pool);
    EXPECT_EQ(found.gradients, expected.gradients);
    EXPECT_EQ(found.values, expected.values);
  }
  const auto alone =
      engine.run({{tokens.data() + 11 * length, length}, length}, target, Objective::kTargetLogit, one);
  EXPECT_TRUE(std::equal(alone.gradients.begin(), alone.gradients.end(),
                         expected.gradients.begin() + static_cast<std::ptrdiff_t>(11 * length * c.d_model)));
}

// A pass at some positions, with first-layer rows from a table that lacks one position, gives the bits of a
// plain run, the final residuals of the forward pass, and the best target logit.
TEST_P(GradientTest, PassEqualsRun) {
  const Fixture fixture = load_fixture(GetParam());
  const ModelConfig& c = fixture.model.config();
  const std::size_t n = 5, length = 7, d = c.d_model;
  const auto tokens = some_tokens(c, n, length, 4);
  const TokenBatch batch{tokens, length};
  const Target target({5, 9}, fixture.model.head());
  ThreadPool pool(1);
  const GradientEngine engine(fixture.model);
  const auto expected = engine.run(batch, target, Objective::kTargetLogit, pool);
  std::vector<std::vector<TokenId>> support(length);
  for (std::size_t j = 0; j + 1 < length; ++j)
    for (std::size_t i = 0; i < n; ++i)
      if (std::find(support[j].begin(), support[j].end(), tokens[i * length + j]) == support[j].end())
        support[j].push_back(tokens[i * length + j]);
  const FirstLayerTable table(fixture.model, support, pool);
  const std::vector<std::size_t> positions = {1, 2, 4, 6};
  std::vector<float> values(n);
  AlignedVector<float> resid(n * d), gradients(n * positions.size() * d), logits_found(n * c.d_vocab);
  GradientPass(engine, target, {n, length, positions}, &table)
      .run(batch, values.data(), {resid.data(), d}, gradients.data());
  EXPECT_EQ(resid, residuals_of(fixture.model, batch, pool));
  logits(fixture.model.head(), n, {resid.data(), d}, pool, {logits_found.data(), c.d_vocab});
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_EQ(values[i], expected.values[i]);
    EXPECT_EQ(values[i], std::max(logits_found[i * c.d_vocab + 5], logits_found[i * c.d_vocab + 9]));
    for (std::size_t j = 0; j < positions.size(); ++j)
      EXPECT_TRUE(std::equal(&gradients[(i * positions.size() + j) * d],
                             &gradients[(i * positions.size() + j) * d] + d,
                             &expected.gradients[(i * length + positions[j]) * d]))
          << "sequence " << i << " position " << positions[j];
  }
}

}  // namespace
}  // namespace deeptail
