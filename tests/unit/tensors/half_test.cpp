#include "tensors/half.h"

#include <gtest/gtest.h>

#include <cmath>

namespace deeptail {
namespace {

// The definition of IEEE binary16, in double precision.
double half_by_definition(std::uint16_t half) {
  const int exponent = (half >> 10) & 31, fraction = half & 1023;
  const double sign = half >> 15 ? -1.0 : 1.0;
  if (exponent == 31) return fraction ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Half, AllPatterns) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double expected = half_by_definition(half);
    const float found = half_to_float(half);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(found)) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(found), expected) << bits;
      ASSERT_EQ(std::signbit(found), std::signbit(expected)) << bits;
    }
  }
}

TEST(Half, BFloat16) {
  EXPECT_EQ(bfloat16_to_float(0x3f80), 1.0f);
  EXPECT_EQ(bfloat16_to_float(0xc040), -3.0f);
  EXPECT_EQ(bfloat16_to_float(0x0001), 0x1p-133f);
  EXPECT_TRUE(std::isinf(bfloat16_to_float(0xff80)));
  EXPECT_TRUE(std::isnan(bfloat16_to_float(0x7fc0)));
}

}  // namespace
}  // namespace deeptail
