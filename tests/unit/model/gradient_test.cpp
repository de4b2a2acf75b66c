// Gradients against finite differences, and their independence of threads and batches.
#include "unit/model/fixture.h"

namespace deeptail {
namespace {

class GradientTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, GradientTest,
                         ::testing::Values("rand-1l-64", "rand-2l-96-no-bias", "rand-4l-64"), name_of_param);

TEST_P(GradientTest, EqualFiniteDifferences) {
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

}  // namespace
}  // namespace deeptail
