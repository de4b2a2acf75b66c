#include "core/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace deeptail {
namespace {

TEST(Nearest, Edits) {
  EXPECT_EQ(edits_between("", ""), 0u);
  EXPECT_EQ(edits_between("", "abc"), 3u);
  EXPECT_EQ(edits_between("kitten", "sitting"), 3u);
  EXPECT_EQ(edits_between("modle", "model"), 1u);  // neighbours swapped
  EXPECT_EQ(edits_between("ca", "abc"), 3u);       // no piece is changed twice
}

TEST(Nearest, OnlyWhatIsNear) {
  const std::vector<std::string> names = {"hex", "caps", "english", "if"};
  EXPECT_EQ(nearest_name("hexx", names), "hex");
  EXPECT_EQ(nearest_name("ENGLSIH", names), "english");
  EXPECT_EQ(nearest_name("xyz", names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'h'), names), "");
  EXPECT_EQ(did_you_mean("cpas", names), "; did you mean \"caps\"?");
  EXPECT_EQ(did_you_mean("something", names), "");
}

}  // namespace
}  // namespace deeptail
