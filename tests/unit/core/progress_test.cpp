#include "core/progress.h"

#include <gtest/gtest.h>

namespace deeptail {
namespace {

TEST(Progress, TextHasRateAndTimeLeft) {
  ProgressState state{.label = "dt-1l hex",
                      .unit = "inputs",
                      .done = 600000,
                      .total = 1000000,
                      .done_before = 100000,
                      .seconds = 10.0};
  EXPECT_EQ(progress_text(state), "dt-1l hex  60%  600k of 1.00M inputs  50.0k inputs/s  ETA 0:08");
  EXPECT_EQ(progress_bar(state).substr(0, 27), "[##############..........] ");
  state.done = state.total;
  EXPECT_EQ(progress_text(state), "dt-1l hex  100%  1.00M of 1.00M inputs  90.0k inputs/s");
}

TEST(Progress, Numbers) {
  EXPECT_EQ(short_count(0), "0");
  EXPECT_EQ(short_count(999), "999");
  EXPECT_EQ(short_count(999.6), "1.00k");
  EXPECT_EQ(short_count(51234), "51.2k");
  EXPECT_EQ(short_count(268435456), "268M");
  EXPECT_EQ(short_count(4.3e15), "4.3e+03T");
  EXPECT_EQ(clock_text(5), "0:05");
  EXPECT_EQ(clock_text(3723), "1:02:03");
}

TEST(Progress, SlowRatesArePerMinute) {
  EXPECT_EQ(progress_text({.label = "x", .unit = "items", .done = 3, .total = 6, .seconds = 6.0}),
            "x  50%  3 of 6 items  30 items/min  ETA 0:06");
  EXPECT_EQ(progress_text({.label = "x", .unit = "items", .done = 12, .total = 24, .seconds = 6.0}),
            "x  50%  12 of 24 items  2 items/s  ETA 0:06");
}

TEST(Progress, LinesAndSilence) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(progress_style(file, false), ProgressStyle::kLines);
  EXPECT_EQ(progress_style(file, true), ProgressStyle::kNone);
  const ProgressState start{.label = "x", .unit = "inputs", .total = 10};
  { ProgressMeter(file, ProgressStyle::kNone, start).update(10); }
  EXPECT_EQ(std::ftell(file), 0);
  {
    ProgressMeter meter(file, ProgressStyle::kLines, start);
    meter.update(1);
    for (int i = 2; i < 10; ++i) meter.update(static_cast<std::uint64_t>(i));   // too soon for another line
    for (int i = 10; i < 20; ++i) meter.update(static_cast<std::uint64_t>(i));  // the end is told once
  }
  std::rewind(file);
  int lines = 0;
  for (int c; (c = std::fgetc(file)) != EOF;) lines += c == '\n' ? 1 : 0;
  EXPECT_EQ(lines, 2);
  std::fclose(file);
}

}  // namespace
}  // namespace deeptail
