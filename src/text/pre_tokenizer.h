// Cuts text into pre-tokens, the pieces that merges never cross: a chain of splits, then ByteLevel.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex.h"

namespace deeptail {

// What becomes of a match: with "-" for matches in "the-final--countdown":
enum class SplitBehavior {
  removed,               // the | final | countdown
  isolated,              // the | - | final | - | - | countdown
  contiguous,            // the | - | final | -- | countdown
  merged_with_previous,  // the- | final- | - | countdown
  merged_with_next,      // the | -final | - | -countdown
};

// Digits is the split \p{N}, isolated or contiguous; ByteLevel's own regex is an isolated split.
struct Split {
  Regex regex;
  SplitBehavior behavior;
  bool invert = false;  // what the pattern does not match counts as the match
};

struct PreTokenizer {
  std::vector<Split> splits;      // in order, each on the pieces of the one before
  bool add_prefix_space = false;  // every piece that does not begin with a space gets one
  std::optional<Split> last;      // ByteLevel's regex, after the space was added
};

// The pattern of ByteLevel with use_regex: GPT-2's.
extern const std::string_view kByteLevelPattern;

// Runs a PreTokenizer; one thread only.
class PieceFinder {
 public:
  explicit PieceFinder(const PreTokenizer& pre_tokenizer);
  PieceFinder(const PieceFinder&) = delete;
  PieceFinder& operator=(const PieceFinder&) = delete;

  // Calls sink(piece) for every piece in order. `text` must be valid UTF-8.
  template <class Sink>
  void for_each_piece(std::string_view text, Sink&& sink) {
    clock_.add_text(text.size());
    run_splits(0, text, sink);
  }

 private:
  template <class Sink>
  void run_splits(std::size_t depth, std::string_view text, Sink& sink) {
    if (depth == pre_tokenizer_->splits.size()) return byte_level(text, sink);
    const auto recurse = [&](std::string_view piece) { run_splits(depth + 1, piece, sink); };
    split(pre_tokenizer_->splits[depth], matchers_[depth], text, recurse);
  }

  template <class Sink>
  void byte_level(std::string_view text, Sink& sink) {
    if (pre_tokenizer_->add_prefix_space && !text.starts_with(' ')) {
      prefixed_.assign(1, ' ').append(text);
      text = prefixed_;
    }
    if (pre_tokenizer_->last)
      split(*pre_tokenizer_->last, matchers_.back(), text, sink);
    else
      sink(text);
  }

  static bool joins(SplitBehavior behavior, bool is_match, bool previous_is_match) {
    switch (behavior) {
      case SplitBehavior::contiguous:
        return is_match == previous_is_match;
      case SplitBehavior::merged_with_previous:
        return is_match && !previous_is_match;
      case SplitBehavior::merged_with_next:
        return !is_match && previous_is_match;
      default:
        return false;
    }
  }

  template <class Sink>
  static void split(const Split& how, Matcher& matcher, std::string_view text, Sink& sink) {
    std::optional<Span> pending;  // grows while the next part joins it
    bool previous_is_match = false;
    const auto flush = [&] {
      if (pending && pending->begin < pending->end)
        sink(text.substr(pending->begin, pending->end - pending->begin));
      pending.reset();
    };
    const auto part = [&](Span span, bool matched) {
      const bool is_match = matched != how.invert;
      if (pending && joins(how.behavior, is_match, previous_is_match)) {
        pending->end = span.end;
      } else {
        flush();
        if (!is_match || how.behavior != SplitBehavior::removed) pending = span;
      }
      previous_is_match = is_match;
    };
    matcher.start(text);
    std::size_t end = 0;
    while (const auto match = matcher.next()) {
      if (end < match->begin) part({end, match->begin}, false);
      part(*match, true);
      end = match->end;
    }
    if (end < text.size()) part({end, text.size()}, false);
    flush();
  }

  const PreTokenizer* pre_tokenizer_;
  MatchClock clock_;               // of all matchers
  std::vector<Matcher> matchers_;  // one for each split, and one for `last`
  std::string prefixed_;
};

}  // namespace deeptail
