// Progress of a long command: one line of a terminal that is drawn again and again, plain lines elsewhere, or
// nothing.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

#include "core/stopwatch.h"
#include "deeptail/watch.h"

namespace deeptail {

enum class ProgressStyle { kBar, kLines, kNone };

// A bar when `out` is a terminal, otherwise lines; nothing when quiet.
ProgressStyle progress_style(std::FILE* out, bool quiet);

// Columns of the terminal, from $COLUMNS where it does not tell, 80 where nobody does; at least 20.
std::size_t terminal_width(std::FILE* out);

// What the reader sees: "dt-1l hex  42%  440k of 1.05M inputs  51.2k inputs/s  0:08 elapsed  ETA 0:12".
struct ProgressState {
  std::string label, unit = {};
  std::string item = {};  // what is worked on now, shown after the label
  std::uint64_t done = 0;
  std::uint64_t total = 0;        // 0: nobody knows; then only the time is shown
  std::uint64_t done_before = 0;  // by an earlier run that this one continues; not part of the rate
  double seconds = 0.0;           // of this run
  double eta = -1.0;              // seconds, where they are known better than from the rate
};
std::string progress_text(const ProgressState& state);
// As much of it as `width` columns hold, with a bar where there is room. What there is none for: words,
// counts, the label before the item, the middle of the item; share and times come first.
std::string progress_line(const ProgressState& state, std::size_t width);

// "440", "51.2k", "1.05M"; "0:12", "1:02:03".
std::string short_count(double n);
std::string clock_text(double seconds);

// Shows at most ten bars a second or one line every ten seconds. Between updates the bar is drawn twice a
// second all the same, so that the time goes on. Its line is cleared in the end: results and errors begin on
// a clean one.
class ProgressMeter {
 public:
  ProgressMeter(std::FILE* out, ProgressStyle style, ProgressState start);
  ~ProgressMeter();
  ProgressMeter(const ProgressMeter&) = delete;
  ProgressMeter& operator=(const ProgressMeter&) = delete;

  // The next stretch of work, with a clock of its own.
  void restart(ProgressState start);
  void update(std::uint64_t done, double eta = -1.0);
  void set_item(std::string item);
  // What a Watch is told.
  void follow(const Progress& progress);
  // Clears the line until there is something new, so that a result can be printed.
  void clear();
  ProgressState state() const;

 private:
  // All of them want mutex_ to be held.
  void begin(ProgressState start);
  bool due(double since) const;
  void show();
  void wipe();
  void beat();  // of the thread

  std::FILE* out_;
  ProgressStyle style_;
  mutable std::mutex mutex_;
  ProgressState state_;
  Stopwatch watch_;
  double updated_at_ = 0.0, shown_at_ = 0.0;
  bool at_end_ = false;
  bool bar_visible_ = false, paused_ = false, over_ = false;
  std::condition_variable over_changed_;
  std::thread heart_;  // of a bar
};

}  // namespace deeptail
