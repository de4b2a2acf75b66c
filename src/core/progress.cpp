#include "core/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/screen_text.h"
#include "core/tell.h"

namespace deeptail {

namespace {

constexpr std::chrono::milliseconds kBeat{500};

// The parts of a line; those that are not known are empty.
struct ProgressParts {
  std::string label = {};  // with the item
  std::string percent = {}, counts = {}, rate = {}, elapsed = {}, eta = {};
};

ProgressParts parts_of(const ProgressState& p) {
  ProgressParts out{.label = p.item.empty() ? p.label : fmt::format("{} {}", p.label, p.item),
                    .elapsed = clock_text(p.seconds)};
  if (p.total == 0) return out;
  out.percent = fmt::format("{:.0f}%", 100.0 * static_cast<double>(p.done) / static_cast<double>(p.total));
  out.counts = fmt::format("{} of {} {}", short_count(static_cast<double>(p.done)),
                           short_count(static_cast<double>(p.total)), p.unit);
  const double rate = p.seconds > 0.0 && p.done > p.done_before
                          ? static_cast<double>(p.done - p.done_before) / p.seconds
                          : 0.0;
  if (rate > 0.0)
    out.rate = rate >= 1.0 ? fmt::format("{} {}/s", short_count(rate), p.unit)
                           : fmt::format("{} {}/min", short_count(60.0 * rate), p.unit);
  if (p.done < p.total && (p.eta >= 0.0 || rate > 0.0))
    out.eta = "ETA " + clock_text(p.eta >= 0.0 ? p.eta : static_cast<double>(p.total - p.done) / rate);
  return out;
}

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string out;
  for (const std::string_view part : parts) {
    if (!out.empty() && !part.empty()) out += "  ";
    out += part;
  }
  return out;
}

std::string bar_of(const ProgressState& p, std::size_t width) {
  if (width == 0 || p.total == 0) return "";
  const double fraction = static_cast<double>(p.done) / static_cast<double>(p.total);
  const auto full = static_cast<std::size_t>(std::min(1.0, fraction) * static_cast<double>(width));
  return fmt::format("[{}{}] ", std::string(full, '#'), std::string(width - full, '.'));
}

}  // namespace

ProgressStyle progress_style(std::FILE* out, bool quiet) {
  if (quiet) return ProgressStyle::kNone;
  const char* const terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return ::isatty(::fileno(out)) != 0 && !dumb ? ProgressStyle::kBar : ProgressStyle::kLines;
}

std::size_t terminal_width(std::FILE* out) {
  constexpr std::size_t kLeast = 20, kUsual = 80;
  struct winsize size {};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return std::max<std::size_t>(kLeast, size.ws_col);
  const char* const text = std::getenv("COLUMNS");
  const std::string_view columns = text == nullptr ? "" : text;
  std::size_t width = 0;
  const auto [stop, error] = std::from_chars(columns.data(), columns.data() + columns.size(), width);
  if (error != std::errc() || stop != columns.data() + columns.size() || width == 0) return kUsual;
  return std::max(kLeast, width);
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

std::string progress_text(const ProgressState& state) {
  const ProgressParts p = parts_of(state);
  return joined({p.label, p.percent, p.counts, p.rate, p.elapsed + " elapsed", p.eta});
}

std::string progress_line(const ProgressState& state, std::size_t width) {
  // Richest first. least_label: columns that the label should have left.
  constexpr struct {
    std::size_t bar;
    bool counts, rate, words;
    std::size_t least_label;
  } kForms[] = {{24, true, true, true, kAnyWidth}, {12, true, true, true, kAnyWidth},
                {12, true, false, true, 32},       {12, true, false, false, 16},
                {12, false, false, false, 16},     {0, false, false, false, 8},
                {0, false, false, false, 0}};
  const ProgressParts p = parts_of(state);
  const std::size_t label_width = display_width(p.label);
  for (const auto& form : kForms) {
    const std::string bar = bar_of(state, form.bar);
    const std::string rest = joined({p.percent, form.counts ? p.counts : "", form.rate ? p.rate : "",
                                     form.words ? p.elapsed + " elapsed" : p.elapsed, p.eta});
    const std::size_t taken = bar.size() + display_width(rest) + 2;
    const std::size_t least = std::min(label_width, form.least_label);
    if (least > 0 && taken + least > width) continue;
    const std::size_t room = taken < width ? width - taken : 0;
    const bool item_alone = label_width > room && !state.item.empty();
    const std::string label = shorten_middle(item_alone ? state.item : p.label, room);
    return shorten_middle(bar + joined({label, rest}), width);
  }
  return "";
}

ProgressMeter::ProgressMeter(std::FILE* out, ProgressStyle style, ProgressState start)
    : out_(out), style_(style) {
  begin(std::move(start));
  if (style_ == ProgressStyle::kBar) heart_ = std::thread([this] { beat(); });
}

ProgressMeter::~ProgressMeter() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  over_changed_.notify_all();
  if (heart_.joinable()) heart_.join();
  wipe();
}

void ProgressMeter::begin(ProgressState start) {
  state_ = std::move(start);
  state_.label = screen_text(state_.label);
  state_.item = screen_text(state_.item);
  watch_.restart();
  updated_at_ = 0.0;
  shown_at_ = -1e9;
  at_end_ = paused_ = false;
}

void ProgressMeter::restart(ProgressState start) {
  const std::lock_guard lock(mutex_);
  begin(std::move(start));
}

void ProgressMeter::update(std::uint64_t done, double eta) {
  const std::lock_guard lock(mutex_);
  state_.done = done;
  state_.eta = eta;
  state_.seconds = updated_at_ = watch_.seconds();
  paused_ = false;
  const bool first_at_end = done >= state_.total && !std::exchange(at_end_, true);
  if (first_at_end || due(shown_at_)) show();
}

void ProgressMeter::set_item(std::string item) {
  const std::lock_guard lock(mutex_);
  state_.item = screen_text(item);
  paused_ = false;
  if (due(std::max(shown_at_, 0.0))) show();  // not at once: a name alone is no news
}

void ProgressMeter::follow(const Progress& progress) {
  bool news = false;
  {
    const std::lock_guard lock(mutex_);
    if (progress.total > 0) state_.total = progress.total;
    state_.done_before = progress.before;
    news = progress.done != state_.done;
  }
  if (!progress.note.empty()) set_item(std::string(progress.note));
  // A question alone must not set back the time that is left.
  if (news) update(progress.done, progress.seconds_left);
}

void ProgressMeter::clear() {
  const std::lock_guard lock(mutex_);
  wipe();
  paused_ = true;
}

ProgressState ProgressMeter::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

bool ProgressMeter::due(double since) const {
  return watch_.seconds() - since >= (style_ == ProgressStyle::kBar ? 0.1 : 10.0);
}

void ProgressMeter::show() {
  shown_at_ = watch_.seconds();
  if (style_ == ProgressStyle::kNone) return;
  if (style_ == ProgressStyle::kLines) {
    tell(out_, "{}\n", progress_text(state_));
  } else {
    // One column stays free: at the last one, terminals differ in where the next character goes. \x1b[K
    // clears what a longer line left.
    ProgressState now = state_;
    now.seconds = shown_at_;
    if (now.eta < 0.0 && now.done > now.done_before && now.done < now.total)
      now.eta = state_.seconds * static_cast<double>(now.total - now.done) /
                static_cast<double>(now.done - now.done_before);
    if (now.eta >= 0.0) now.eta = std::max(0.0, now.eta - (shown_at_ - updated_at_));
    tell(out_, "\r{}\x1b[K", progress_line(now, terminal_width(out_) - 1));
    bar_visible_ = true;
  }
  std::fflush(out_);
}

void ProgressMeter::wipe() {
  if (!std::exchange(bar_visible_, false)) return;
  tell(out_, "\r\x1b[K");
  std::fflush(out_);
}

void ProgressMeter::beat() {
  std::unique_lock lock(mutex_);
  while (!over_changed_.wait_for(lock, kBeat, [this] { return over_; }))
    if (!paused_ && watch_.seconds() - shown_at_ >= 0.4) show();
}

}  // namespace deeptail
