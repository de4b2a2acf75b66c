#include "deeptail/enum_names.h"

#include <gtest/gtest.h>

namespace deeptail {

enum class Season { kSpring, kAutumn };
template <>
struct EnumNames<Season> {
  static constexpr std::string_view kAll[] = {"spring", "autumn"};
};
enum class Nameless { kOne };

namespace {

static_assert(NamedEnum<Season> && !NamedEnum<Nameless>);
static_assert(name_of(Season::kAutumn) == "autumn");

TEST(EnumNames, BothWays) {
  for (const Season season : {Season::kSpring, Season::kAutumn})
    EXPECT_EQ(value_named<Season>(name_of(season)), season);
  for (const char* other : {"", "Spring", "winter", "autumn "})
    EXPECT_FALSE(value_named<Season>(other)) << other;
  EXPECT_EQ(name_of(static_cast<Season>(7)), "");
}

}  // namespace
}  // namespace deeptail
