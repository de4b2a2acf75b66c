#include "core/progress.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/screen_text.h"

namespace deeptail {
namespace {

TEST(Progress, TextHasRateAndTimeLeft) {
  ProgressState state{.label = "dt-1l hex",
                      .unit = "inputs",
                      .done = 600000,
                      .total = 1000000,
                      .done_before = 100000,
                      .seconds = 10.0};
  EXPECT_EQ(progress_text(state),
            "dt-1l hex  60%  600k of 1.00M inputs  50.0k inputs/s  0:10 elapsed  ETA 0:08");
  EXPECT_EQ(progress_line(state, 200), "[##############..........] " + progress_text(state));
  state.done = state.total;
  EXPECT_EQ(progress_text(state), "dt-1l hex  100%  1.00M of 1.00M inputs  90.0k inputs/s  0:10 elapsed");
}

TEST(Progress, LinesFitAnyWidth) {
  ProgressState state{.label = "a suite with quite a long name",
                      .unit = "items",
                      .item = "tokensplit dt-1l \u6f22\u5b57\u6f22\u5b57 310",
                      .done = 3,
                      .total = 32,
                      .seconds = 4000.0};
  for (std::size_t width = 19; width < 200; ++width) {
    const std::string line = progress_line(state, width);
    EXPECT_LE(display_width(line), width) << line;
    EXPECT_NE(line.find("9%"), std::string::npos) << line;
    if (width > 24) {
      EXPECT_NE(line.find("1:06:40"), std::string::npos) << line;
    }
  }
  state.seconds = 5.0;
  EXPECT_EQ(progress_line(state, 19), "9%  0:05  ETA 0:48");
  EXPECT_EQ(progress_line(state, 49), "tokensplit dt-1l \u6f22\u5b57\u6f22\u5b57 310  9%  0:05  ETA 0:48");
  EXPECT_EQ(progress_line(state, 35), "tokensp..\u5b57 310  9%  0:05  ETA 0:48");
  EXPECT_EQ(progress_line({.label = "loading dt-1l", .seconds = 2.0}, 79), "loading dt-1l  0:02 elapsed");
}

TEST(Progress, WidthFromTheEnvironmentWhereThereIsNoTerminal) {
  std::FILE* file = std::tmpfile();
  ::setenv("COLUMNS", "47", 1);
  EXPECT_EQ(terminal_width(file), 47u);
  ::setenv("COLUMNS", "3", 1);
  EXPECT_EQ(terminal_width(file), 20u);
  ::setenv("COLUMNS", "x", 1);
  EXPECT_EQ(terminal_width(file), 80u);
  ::unsetenv("COLUMNS");
  EXPECT_EQ(terminal_width(file), 80u);
  std::fclose(file);
}

// Between updates the line is drawn again; when it is cleared or over, nothing is.
TEST(ProgressMeter, BeatsUntilItIsCleared) {
  std::FILE* file = std::tmpfile();
  const auto written = [&] {
    std::fflush(file);
    return std::filesystem::file_size("/proc/self/fd/" + std::to_string(::fileno(file)));
  };
  {
    ProgressMeter meter(file, ProgressStyle::kBar, {.label = "x"});
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    EXPECT_GT(written(), 0u);
    meter.clear();
    const auto cleared = written();
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    EXPECT_EQ(written(), cleared);
    meter.update(1);
    EXPECT_GT(written(), cleared);
  }
  std::rewind(file);
  std::string text;
  for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  EXPECT_TRUE(text.ends_with("\r\x1b[K")) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
  std::fclose(file);
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
            "x  50%  3 of 6 items  30 items/min  0:06 elapsed  ETA 0:06");
  EXPECT_EQ(progress_text({.label = "x", .unit = "items", .done = 12, .total = 24, .seconds = 6.0}),
            "x  50%  12 of 24 items  2 items/s  0:06 elapsed  ETA 0:06");
}

TEST(ProgressMeter, FollowsWhatAWatchIsTold) {
  ProgressMeter meter(stderr, ProgressStyle::kNone, {.label = "x", .unit = "items", .total = 5});
  meter.follow({.done = 3, .total = 9, .before = 2, .seconds_left = 7.0, .note = "first"});
  ProgressState state = meter.state();
  EXPECT_EQ(state.done, 3u);
  EXPECT_EQ(state.total, 9u);
  EXPECT_EQ(state.done_before, 2u);
  EXPECT_EQ(state.eta, 7.0);
  EXPECT_EQ(state.item, "first");
  // A question alone changes nothing.
  meter.follow(progress_of(3, 0, 2));
  state = meter.state();
  EXPECT_EQ(state.total, 9u);
  EXPECT_EQ(state.eta, 7.0);
  EXPECT_EQ(state.item, "first");
  EXPECT_EQ(progress_of(3, 0).share, 3.0);
  EXPECT_EQ(progress_of(3, 12).share, 0.25);
  EXPECT_TRUE(goes_on({}, {}));
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
