// Regular expressions over valid UTF-8, by PCRE2 with its just-in-time compiler.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

// The names PCRE2 gives its types for 8-bit code units.
struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;
struct pcre2_real_jit_stack_8;

namespace deeptail {

struct Span {
  std::size_t begin, end;  // bytes
};

class Regex {
 public:
  // A pattern in Oniguruma's syntax. Throws InputError naming `where` when it cannot be compiled.
  static Regex from_pattern(std::string_view pattern, std::string_view where);
  static Regex from_literal(std::string_view text, std::string_view where);

 private:
  friend class Matcher;
  friend class MatchClock;
  Regex(std::string_view pattern, unsigned options, std::string_view shown, std::string_view where);
  std::shared_ptr<const pcre2_real_code_8> code_;
  std::string shown_;  // for messages
};

// How long the matchers of one text may take together.
class MatchClock {
 public:
  // Every call of PCRE2 is told; `costly` ones look at the clock at once. Throws InputError when time is up.
  void tick(const Regex& regex, bool costly);
  void add_text(std::size_t bytes) { bytes_ += bytes; }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::size_t bytes_ = 0, n_calls_ = 0;
};

// Finds the matches of one Regex in one text after the other; one thread only. Matches do not overlap, and an
// empty match right after another match is skipped (as Oniguruma's Rust interface does it).
class Matcher {
 public:
  Matcher(const Regex& regex, MatchClock& clock);

  void start(std::string_view text);

  // Throws InputError when the pattern needs more steps or time than any sensible one.
  std::optional<Span> next();

 private:
  std::optional<Span> search(std::size_t from);
  int match(std::size_t from);
  int match_within(std::size_t backtracks, std::size_t from);

  const Regex* regex_;
  MatchClock* clock_;
  std::shared_ptr<pcre2_real_match_data_8> data_;
  std::shared_ptr<pcre2_real_match_context_8> context_;
  std::shared_ptr<pcre2_real_jit_stack_8> stack_;  // only once the default one was too small
  std::string_view text_;
  std::size_t position_ = 0;
  std::optional<std::size_t> last_end_;
};

}  // namespace deeptail
