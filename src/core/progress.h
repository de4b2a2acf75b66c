// Progress of a long command: a bar on a terminal, plain lines elsewhere, or nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace deeptail {

enum class ProgressStyle { kBar, kLines, kNone };

// A bar when `out` is a terminal, otherwise lines; nothing when quiet.
ProgressStyle progress_style(std::FILE* out, bool quiet);

// What the reader sees: "dt-1l hex  42%  440k of 1.05M inputs  51.2k inputs/s  ETA 0:12".
struct ProgressState {
  std::string label, unit;
  std::uint64_t done = 0, total = 0;
  std::uint64_t done_before = 0;  // by an earlier run that this one continues; not part of the rate
  double seconds = 0.0;           // of this run
  double eta = -1.0;              // seconds, where they are known better than from the rate
};
std::string progress_text(const ProgressState& state);
std::string progress_bar(const ProgressState& state);

// "440", "51.2k", "1.05M"; "0:12", "1:02:03".
std::string short_count(double n);
std::string clock_text(double seconds);

class ProgressMeter {
 public:
  ProgressMeter(std::FILE* out, ProgressStyle style, ProgressState start);
  ~ProgressMeter();
  ProgressMeter(const ProgressMeter&) = delete;
  ProgressMeter& operator=(const ProgressMeter&) = delete;

  // Shows at most ten bars a second or one line every ten seconds.
  void update(std::uint64_t done, double eta = -1.0);
  // Where they are not known at the start.
  void set_total(std::uint64_t total) { state_.total = total; }
  void set_done_before(std::uint64_t done) { state_.done_before = done; }
  const ProgressState& state() const { return state_; }

 private:
  void show();

  std::FILE* out_;
  ProgressStyle style_;
  ProgressState state_;
  std::chrono::steady_clock::time_point start_;
  double shown_at_ = -1e9;
  bool at_end_ = false;
  bool bar_visible_ = false;
};

}  // namespace deeptail
