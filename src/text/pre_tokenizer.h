// Cuts text into pre-tokens, the pieces that merges never cross: a chain of steps, each on the pieces of the
// one before.
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

struct Split {
  Regex regex;
  SplitBehavior behavior;
  bool invert = false;  // what the pattern does not match counts as the match
};

// First spaces are rewritten, then the prefix is put before a piece that does not begin with it, then the piece
// is cut. Digits is the split \p{N}, isolated or contiguous; ByteLevel has the prefix " " and an isolated split
// by a pattern of its own; Metaspace writes U+2581 for spaces, which is its prefix and where it cuts.
struct PreTokenizerStep {
  std::string space = {};             // what a space becomes; "": it stays
  std::string prefix = {};            // "": none
  bool prefix_at_start_only = false;  // only for the piece at the beginning of the whole text
  std::optional<Split> split = {};
};

struct PreTokenizer {
  std::vector<PreTokenizerStep> steps = {};
  bool bytes = false;  // ByteLevel: the model sees bytes; otherwise characters
};

// The pattern of ByteLevel with use_regex: GPT-2's.
extern const std::string_view kByteLevelPattern;

// Runs a PreTokenizer; one thread only.
class PieceFinder {
 public:
  explicit PieceFinder(const PreTokenizer& pre_tokenizer);
  PieceFinder(const PieceFinder&) = delete;
  PieceFinder& operator=(const PieceFinder&) = delete;

  // Calls sink(piece) for every piece in order. `text` must be valid UTF-8; at_start: the whole text begins
  // with it.
  template <class Sink>
  void for_each_piece(std::string_view text, bool at_start, Sink&& sink) {
    clock_.add_text(text.size());
    run_steps(0, text, at_start, sink);
  }

 private:
  template <class Sink>
  void run_steps(std::size_t depth, std::string_view text, bool at_start, Sink& sink) {
    if (text.empty()) return;
    if (depth == pre_tokenizer_->steps.size()) return sink(text);
    const PreTokenizerStep& step = pre_tokenizer_->steps[depth];
    const std::string_view whole = rewritten(step, text, at_start, rewritten_[depth]);
    const auto recurse = [&](std::string_view piece) {
      run_steps(depth + 1, piece, at_start && piece.data() == whole.data(), sink);
    };
    if (step.split)
      split(*step.split, *matchers_[depth], whole, recurse);
    else
      recurse(whole);
  }

  // The text after the step's changes to it, which may lie in `storage`.
  static std::string_view rewritten(const PreTokenizerStep& step, std::string_view text, bool at_start,
                                    std::string& storage);

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
  MatchClock clock_;                              // of all matchers
  std::vector<std::optional<Matcher>> matchers_;  // [steps]
  std::vector<std::string> rewritten_;            // [steps]
};

}  // namespace deeptail
