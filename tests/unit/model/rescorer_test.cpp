// Re-scored sequences equal a full run to the bit, through long chains of accepted and rejected changes.
#include <random>

#include "sizes.h"
#include "unit/model/fixture.h"

namespace deeptail {
namespace {

class RescorerTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, RescorerTest, ::testing::ValuesIn(fixture_names()), name_of_param);

TEST_P(RescorerTest, EqualsAFullRunToTheBit) {
  const Fixture fixture = load_fixture(GetParam());
  const ModelConfig& c = fixture.model.config();
  const std::size_t n = sized(101, 41), length = std::min<std::size_t>(c.n_ctx, 11), d = c.d_model;
  std::vector<TokenId> current = some_tokens(c, n, length, 4);
  for (const std::size_t threads : {1, 7}) {
    ThreadPool pool(threads);
    Rescorer rescorer(fixture.model, n, length, pool);
    AlignedVector<float> first(n * d);
    rescorer.reset({current, length}, {first.data(), d});
    EXPECT_EQ(first, residuals_of(fixture.model, {current, length}, pool));

    std::mt19937 engine(7);
    for (int step = 0; step < sized(5, 3); ++step) {
      std::vector<TokenId> proposed = current;
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t changes = engine() % 3; changes > 0; --changes)  // none, one or two positions
          proposed[i * length + engine() % length] = static_cast<TokenId>(engine() % c.d_vocab);
      std::vector<Rescorer::Proposal> proposals;
      for (std::size_t i = 0; i < n; ++i)
        proposals.push_back({n - 1 - i, proposed.data() + (n - 1 - i) * length});
      const auto expected = residuals_of(fixture.model, {proposed, length}, pool);
      rescorer.propose(proposals, [&](std::size_t at, std::size_t count, ConstRows resid,
                                      std::span<std::uint8_t> accept, std::size_t) {
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t slot = proposals[at + i].slot;
          EXPECT_TRUE(std::equal(resid.row(i), resid.row(i) + d, expected.data() + slot * d))
              << "slot " << slot;
          accept[i] = (slot + static_cast<std::size_t>(step)) % 2;
        }
      });
      for (std::size_t i = 0; i < n; ++i) {
        if ((i + static_cast<std::size_t>(step)) % 2 != 0)
          std::copy_n(proposed.data() + i * length, length, current.data() + i * length);
        EXPECT_TRUE(
            std::equal(rescorer.tokens(i).begin(), rescorer.tokens(i).end(), current.data() + i * length));
      }
      rescorer.copy_slot(3, 5);
      std::copy_n(current.data() + 3 * length, length, current.data() + 5 * length);
    }
  }
}

}  // namespace
}  // namespace deeptail
