#include "core/parse_count.h"

#include <gtest/gtest.h>

#include "deeptail/core.h"

namespace deeptail {
namespace {

TEST(ParseCount, Forms) {
  EXPECT_EQ(parse_count("1000000", "--n"), 1000000u);
  EXPECT_EQ(parse_count("2^20", "--n"), 1048576u);
  EXPECT_EQ(parse_count("1e6", "--n"), 1000000u);
  EXPECT_EQ(parse_count("1E+6", "--n"), 1000000u);
  EXPECT_EQ(parse_count("1.6e6", "--n"), 1600000u);
  EXPECT_EQ(parse_count("0.5e1", "--n"), 5u);
  EXPECT_EQ(parse_count("12.5e1", "--n"), 125u);
  EXPECT_EQ(parse_count("2^62", "--n"), std::uint64_t{1} << 62);
}

TEST(ParseCount, RefusesWhatIsNotWholeOrTooLarge) {
  for (const char* text : {"", "0", "-1", "1.5", "1.55e1", "1e", "e3", ".e3", "1.2.3e5", "1e-3", "2^-1",
                           "2^63", "1e19", "1e300", "99999999999999999999", "1e6x", "+5", "1e++6", "nan"})
    EXPECT_THROW(parse_count(text, "--n"), InputError) << text;
}

}  // namespace
}  // namespace deeptail
