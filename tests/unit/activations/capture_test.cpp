#include <gtest/gtest.h>

#include <filesystem>

#include "deeptail/activations.h"
#include "unit/chain_law.h"

namespace deeptail {
namespace {

struct Zoo {
  Transformer model = Transformer::load(DEEPTAIL_SOURCE "/models/dt-1l");
  Distribution dist = load_distribution(DEEPTAIL_SOURCE "/distributions/colon.json");
};

TEST(Capture, IsTheForwardPassOfItsOwnInputs) {
  const Zoo zoo;
  ThreadPool pool(2);
  const std::size_t n = 20, length = zoo.dist.length(), d = zoo.model.config().d_model;
  const Activations a = capture(zoo.model, zoo.dist, {.count = n, .seed = 5}, pool);
  std::vector<TokenId> tokens(n * length), early(n * length);
  sample_range(zoo.dist, 5, std::uint64_t{1} << 62, pool, tokens);
  sample_range(zoo.dist, 5, 0, pool, early);
  EXPECT_NE(tokens, early);  // the inputs of ground truth
  AlignedVector<float> expected(n * d);
  final_residuals(zoo.model, {tokens, length}, pool, {expected.data(), d});
  EXPECT_EQ(a.values, expected);
  // colon ends in a constant ":", so the last token that varies stands before it.
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(a.last_tokens[i], tokens[i * length + length - 2]);
}

TEST(Capture, IsTheSameForAnyNumberOfThreadsAndGrows) {
  const Zoo zoo;
  ThreadPool one(1), seven(7);
  const Activations few = capture(zoo.model, zoo.dist, {.count = 50}, one);
  const Activations more = capture(zoo.model, zoo.dist, {.count = 70}, seven);
  EXPECT_TRUE(std::equal(few.values.begin(), few.values.end(), more.values.begin()));
}

// Where positions are not independent draws, there is no last one that varies.
TEST(Capture, InputsOfAnyLaw) {
  const Zoo zoo;
  ThreadPool pool(2);
  const std::size_t n = 30, d = zoo.model.config().d_model;
  const ChainLaw law(8, zoo.model.config().d_vocab);
  const Activations a = capture(zoo.model, law, {.count = n, .seed = 5}, pool);
  const Inputs inputs = sample_inputs(law, 5, std::uint64_t{1} << 62, n, pool);
  AlignedVector<float> expected(n * d);
  final_residuals(zoo.model, inputs.batch(), pool, {expected.data(), d});
  EXPECT_EQ(a.values, expected);
  EXPECT_TRUE(a.last_tokens.empty());
}

TEST(Capture, EndsEarlyWhenToldTo) {
  const Zoo zoo;
  ThreadPool pool(2);
  const Activations a =
      capture(zoo.model, zoo.dist, {.count = 10000}, pool, [](const Progress&) { return false; });
  EXPECT_LT(a.n, 10000u);
  EXPECT_EQ(a.values.size(), a.n * a.d_model);
  EXPECT_THROW(capture(zoo.model, zoo.dist, {.count = 0}, pool), InputError);
}

TEST(ActivationFile, ComesBackAndRefusesOtherShapes) {
  const std::string path = ::testing::TempDir() + "deeptail-activations.npy";
  Activations a{.n = 2, .d_model = 3, .values = {1, 2, 3, 4, 5, 6}};
  write_activations(path, a);
  const Activations back = read_activations(path);
  EXPECT_EQ(back.n, 2u);
  EXPECT_EQ(back.d_model, 3u);
  EXPECT_EQ(back.values, a.values);
  write_npy(path, a.values, std::array<std::int64_t, 1>{6});
  EXPECT_THROW(read_activations(path), InputError);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace deeptail
