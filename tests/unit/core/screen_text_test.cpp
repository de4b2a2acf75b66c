#include "core/screen_text.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace deeptail {
namespace {

TEST(ScreenText, EscapesWhatCannotBeSeen) {
  EXPECT_EQ(screen_text("a\x1b[31mb\n\x7f", 80, true), "a\\x1b[31mb\\x0a\\x7f");
  EXPECT_EQ(screen_text("\u00e9\u6f22", 80, true), "\u00e9\u6f22");
  EXPECT_EQ(screen_text("\u00e9", 80, false), "\\xc3\\xa9");
  EXPECT_EQ(screen_text("\xff\xc3", 80, true), "\\xff\\xc3");     // not UTF-8
  EXPECT_EQ(screen_text("\u009b", 80, true), "\\xc2\\x9b");       // a control character
  EXPECT_EQ(screen_text("\u202e", 80, true), "\\xe2\\x80\\xae");  // turns the text around
  EXPECT_EQ(screen_text("\u00a0", 80, true), "\\xc2\\xa0");       // looks like a space
  EXPECT_EQ(screen_text(std::string(100, 'x'), 10, true), std::string(10, 'x') + "...");
}

TEST(ScreenText, QuotesAndTheLocale) {
  ::setenv("LC_ALL", "de_DE.utf8", 1);
  EXPECT_TRUE(utf8_locale());
  EXPECT_EQ(quoted_text("a\"\\\u00e9"), "\"a\\\"\\\\\u00e9\"");
  ::setenv("LC_ALL", "C", 1);
  EXPECT_FALSE(utf8_locale());
  EXPECT_EQ(screen_text("\u00e9"), "\\xc3\\xa9");
  ::unsetenv("LC_ALL");
}

TEST(ScreenText, Widths) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("\u6f22\u5b57"), 4u);  // wide
  EXPECT_EQ(display_width("e\u0301"), 1u);       // an accent of its own
  EXPECT_EQ(shorten_middle("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shorten_middle("abcdefghij", 8), "abc..hij");
  EXPECT_EQ(shorten_middle("abcdefghij", 3), "abj");
  EXPECT_EQ(shorten_middle("abcdefghij", 0), "");
  for (std::size_t width = 0; width < 30; ++width)
    EXPECT_LE(display_width(shorten_middle("\u6f22\u5b57\u6f22\u5b57 and \u6f22\u5b57\u6f22\u5b57", width)),
              width);
}

}  // namespace
}  // namespace deeptail
