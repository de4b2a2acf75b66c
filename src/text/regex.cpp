#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>

#include "core/json.h"
#include "deeptail/core.h"
#include "text/regex_syntax.h"
#include "text/unicode.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxPattern = 16384;
// A match may backtrack this often from one starting point, and more in long texts (a run of n spaces may
// need n). Almost all need less than kFewBacktracks and are asked with that limit first.
constexpr std::size_t kFewBacktracks = 4'000;
constexpr std::size_t kMinBacktracks = 1'000'000;
constexpr std::size_t kBacktracksPerByte = 4;
// Starting points of one call of PCRE2, and calls within few backtracks between two looks at the clock: a
// fraction of a second at worst. Before every call with more backtracks the clock is looked at.
constexpr std::size_t kWindow = 64;
constexpr std::size_t kCallsPerCheck = 64;
// Time for one encode call, hundreds of times what common patterns take.
constexpr std::chrono::microseconds kMinTime = std::chrono::seconds(1);
constexpr std::chrono::microseconds kTimePerByte{4};

constexpr std::size_t kJitStackStart = std::size_t{64} << 10;
constexpr std::size_t kJitStackMax = std::size_t{8} << 20;

std::string pcre2_message(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

template <class T>
T* not_null(T* pointer) {
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

}  // namespace

Regex::Regex(std::string_view pattern, unsigned options, std::string_view shown, std::string_view where)
    : shown_(printable(shown, 200)) {
  if (pattern.size() > kMaxPattern)
    throw InputError("{}: the pattern has {} bytes after translation; at most {} are supported", where,
                     pattern.size(), kMaxPattern);
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      not_null(pcre2_compile_context_create(nullptr)), pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   options | PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_USE_OFFSET_LIMIT, &error,
                                   &offset, context.get());
  if (code == nullptr)
    throw InputError("{}: the pattern \"{}\" cannot be compiled: {}", where, shown_, pcre2_message(error));
  code_ = std::shared_ptr<const pcre2_code>(
      code, [](const pcre2_code* c) { pcre2_code_free(const_cast<pcre2_code*>(c)); });
  // Without the just-in-time compiler (not on every machine) matching is slower, with the same results.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
}

Regex Regex::from_pattern(std::string_view pattern, std::string_view where) {
  return Regex(pcre2_from_oniguruma(pattern, where), PCRE2_UCP | PCRE2_MULTILINE, pattern, where);
}

Regex Regex::from_literal(std::string_view text, std::string_view where) {
  return Regex(text, PCRE2_LITERAL, text, where);
}

void MatchClock::tick(const Regex& regex, bool costly) {
  if (++n_calls_ % kCallsPerCheck != 0 && !costly) return;
  if (std::chrono::steady_clock::now() - began_ > kMinTime + kTimePerByte * bytes_)
    throw InputError("the tokenizer's pattern \"{}\" takes too long on a text of {} bytes", regex.shown_,
                     bytes_);
}

Matcher::Matcher(const Regex& regex, MatchClock& clock)
    : regex_(&regex),
      clock_(&clock),
      data_(not_null(pcre2_match_data_create(1, nullptr)), pcre2_match_data_free),
      context_(not_null(pcre2_match_context_create(nullptr)), pcre2_match_context_free) {}

void Matcher::start(std::string_view text) {
  text_ = text;
  position_ = 0;
  last_end_.reset();
}

std::optional<Span> Matcher::next() {
  while (position_ <= text_.size()) {
    const auto found = search(position_);
    if (!found) {
      position_ = text_.size() + 1;
      return std::nullopt;
    }
    const bool repeated = found->begin == found->end && last_end_ == found->end;
    if (!repeated) {
      position_ = found->end;
      last_end_ = found->end;
      return found;
    }
    position_ += position_ < text_.size() ? code_point_at(text_, position_).length : 1;
  }
  return std::nullopt;
}

// One window of starting points after the other.
std::optional<Span> Matcher::search(std::size_t from) {
  while (true) {
    const std::size_t last = std::min(text_.size(), from + kWindow);
    pcre2_set_offset_limit(context_.get(), last);
    const int result = match(from);
    if (result >= 0) {
      const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data_.get());
      return Span{ends[0], ends[1]};
    }
    if (result != PCRE2_ERROR_NOMATCH)
      throw InputError(
          "the tokenizer's pattern \"{}\" cannot be matched near byte {} of a text of {} bytes: {}",
          regex_->shown_, from, text_.size(), pcre2_message(result));
    if (last == text_.size()) return std::nullopt;
    from = last + 1;
    while (from < text_.size() && (static_cast<unsigned char>(text_[from]) & 0xC0u) == 0x80u) ++from;
  }
}

int Matcher::match(std::size_t from) {
  clock_->tick(*regex_, false);
  if (const int result = match_within(kFewBacktracks, from); result != PCRE2_ERROR_MATCHLIMIT) return result;
  clock_->tick(*regex_, true);
  return match_within(std::max(kMinBacktracks, kBacktracksPerByte * text_.size()), from);
}

int Matcher::match_within(std::size_t backtracks, std::size_t from) {
  pcre2_set_match_limit(context_.get(),
                        static_cast<std::uint32_t>(std::min<std::size_t>(backtracks, UINT32_MAX)));
  const auto attempt = [&] {
    return pcre2_match(regex_->code_.get(), reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), from,
                       PCRE2_NO_UTF_CHECK, data_.get(), context_.get());
  };
  const int result = attempt();
  if (result != PCRE2_ERROR_JIT_STACKLIMIT || stack_) return result;
  stack_.reset(not_null(pcre2_jit_stack_create(kJitStackStart, kJitStackMax, nullptr)), pcre2_jit_stack_free);
  pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
  return attempt();
}

}  // namespace deeptail
