#include "core/random.h"

#include <gtest/gtest.h>

#include <set>

namespace deeptail {
namespace {

// The philox4x32-10 lines of Random123's known answers: counter, key, output.
TEST(Random, KnownAnswersOfPhilox) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t f = 0xffffffff;
  EXPECT_EQ(philox({f, f, f, f}, {f, f}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// The last known answer again, through the layout that every backend must repeat.
TEST(Random, LayoutOfKeyAndCounter) {
  const RngKey key{0x299f31d0a4093822, static_cast<Stream>(0x03707344)};
  const std::uint64_t index = 0x85a308d3243f6a88;
  const std::uint32_t block = 0x13198a2e;
  EXPECT_EQ(uniform64_pair(key, index, block)[0], 0x94fdccebd16cfe09);
  EXPECT_EQ(uniform64_pair(key, index, block)[1], 0x24126ea15001e420);
  EXPECT_EQ(uniform64(key, index, 2 * block), 0x94fdccebd16cfe09);
  EXPECT_EQ(uniform64(key, index, 2 * block + 1), 0x24126ea15001e420);
}

TEST(Random, EveryKeyMatters) {
  std::set<std::uint64_t> seen;
  for (const std::uint64_t seed : {0ull, 1ull, 1ull << 32, 1ull << 63})
    for (const std::uint64_t index : {0ull, 1ull, 1ull << 32, 1ull << 63})
      for (const std::uint32_t slot : {0u, 1u, 2u, 0xffffffffu})
        for (const std::uint32_t stream : {1u, 2u})
          seen.insert(uniform64({seed, static_cast<Stream>(stream)}, index, slot));
  EXPECT_EQ(seen.size(), 4u * 4u * 4u * 2u);
}

}  // namespace
}  // namespace deeptail
