#include "core/csv.h"

#include <gtest/gtest.h>

namespace deeptail {
namespace {

TEST(CsvField, IsQuotedWhereItMustBe) {
  EXPECT_EQ(csv_field("plain text"), "plain text");
  EXPECT_EQ(csv_field(""), "");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"a\""), "\"say \"\"a\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
}

TEST(CsvField, IsNoFormula) {
  EXPECT_EQ(csv_field("=1+1"), "'=1+1");
  EXPECT_EQ(csv_field("+1"), "'+1");
  EXPECT_EQ(csv_field("-"), "'-");
  EXPECT_EQ(csv_field("@SUM(1)"), "'@SUM(1)");
  EXPECT_EQ(csv_field("\t=1"), "'\t=1");
  EXPECT_EQ(csv_field("\r=1"), "\"'\r=1\"");
  EXPECT_EQ(csv_field("=HYPERLINK(\"a\",1)"), "\"'=HYPERLINK(\"\"a\"\",1)\"");
  EXPECT_EQ(csv_field("a=1"), "a=1");
}

}  // namespace
}  // namespace deeptail
