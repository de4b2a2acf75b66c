#include "core/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/json.h"
#include "core/tell.h"

namespace deeptail {

ProgressStyle progress_style(std::FILE* out, bool quiet) {
  if (quiet) return ProgressStyle::kNone;
  return ::isatty(::fileno(out)) != 0 ? ProgressStyle::kBar : ProgressStyle::kLines;
}

std::string short_count(double n) {
  for (const char* suffix : {"", "k", "M", "G"}) {
    if (n < 999.5)
      return fmt::format("{:.{}f}{}", n, *suffix == '\0' || n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2, suffix);
    n /= 1000.0;
  }
  return fmt::format("{:.3g}T", n);
}

std::string clock_text(double seconds) {
  const auto s = static_cast<std::uint64_t>(std::clamp(seconds, 0.0, 1e9) + 0.5);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string progress_text(const ProgressState& p) {
  const double fraction = p.total == 0 ? 1.0 : static_cast<double>(p.done) / static_cast<double>(p.total);
  const double rate = p.seconds > 0.0 ? static_cast<double>(p.done - p.done_before) / p.seconds : 0.0;
  std::string text = fmt::format("{}  {:.0f}%  {} of {} {}", p.label, 100.0 * fraction,
                                 short_count(static_cast<double>(p.done)),
                                 short_count(static_cast<double>(p.total)), p.unit);
  if (rate >= 1.0)
    text += fmt::format("  {} {}/s", short_count(rate), p.unit);
  else if (rate > 0.0)
    text += fmt::format("  {} {}/min", short_count(60.0 * rate), p.unit);
  if (p.eta >= 0.0 && p.done < p.total)
    text += fmt::format("  ETA {}", clock_text(p.eta));
  else if (rate > 0.0 && p.done < p.total)
    text += fmt::format("  ETA {}", clock_text(static_cast<double>(p.total - p.done) / rate));
  return text;
}

std::string progress_bar(const ProgressState& p) {
  constexpr std::size_t kWidth = 24;
  const double fraction = p.total == 0 ? 1.0 : static_cast<double>(p.done) / static_cast<double>(p.total);
  const std::size_t full = std::min(kWidth, static_cast<std::size_t>(fraction * kWidth));
  return fmt::format("[{}{}] {}", std::string(full, '#'), std::string(kWidth - full, '.'), progress_text(p));
}

ProgressMeter::ProgressMeter(std::FILE* out, ProgressStyle style, ProgressState start)
    : out_(out), style_(style), state_(std::move(start)), start_(std::chrono::steady_clock::now()) {
  state_.label = printable(state_.label);
}

ProgressMeter::~ProgressMeter() {
  if (bar_visible_) std::fputc('\n', out_);
}

void ProgressMeter::update(std::uint64_t done, double eta) {
  state_.done = done;
  state_.eta = eta;
  state_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const double wait = style_ == ProgressStyle::kBar ? 0.1 : 10.0;
  const bool first_at_end = done >= state_.total && !std::exchange(at_end_, true);
  if (!first_at_end && state_.seconds - shown_at_ < wait) return;
  shown_at_ = state_.seconds;
  show();
}

void ProgressMeter::show() {
  if (style_ == ProgressStyle::kNone) return;
  if (style_ == ProgressStyle::kLines) {
    tell(out_, "{}\n", progress_text(state_));
  } else {
    tell(out_, "\r{}\x1b[K", progress_bar(state_));  // \x1b[K clears what a longer line left
    bar_visible_ = true;
  }
  std::fflush(out_);
}

}  // namespace deeptail
