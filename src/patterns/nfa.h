// A regular expression as an automaton on bytes that may be in many states at once (Thompson 1968).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "deeptail/patterns.h"
#include "patterns/regex_tree.h"

namespace deeptail {

struct ByteNfa {
  static constexpr std::uint32_t kNowhere = 0xffffffff;
  struct State {
    enum class Kind : std::uint8_t {
      bytes,  // a byte from low to high leads to next
      fork,   // to next and to other, without a byte
      text_start,
      text_end,
      word_edge,
      no_word_edge,  // to next, without a byte, where it holds
      accept,
    };
    Kind kind;
    std::uint8_t low = 0, high = 0;
    std::uint32_t next = kNowhere, other = kNowhere;
  };
  std::vector<State> states;
  std::uint32_t start = 0;
};

// `where` begins the message of an expression that is too large.
ByteNfa nfa_of(const RegexNode& tree, std::string_view where);

// An automaton with few different bytes: those of one class lead to the same states.
struct ClassDfa {
  std::size_t n_classes = 0;
  std::vector<std::uint8_t> class_of;  // [256]
  std::vector<std::uint32_t> next;     // [n_states, n_classes]
  std::vector<std::uint8_t> at_end;    // [n_states]: a text that ends here is accepted
  std::uint32_t start = 0;
  std::size_t size() const { return at_end.size(); }
};
// The same, in one state at a time; a match is looked for from every byte on.
ClassDfa determinise(const ByteNfa& nfa, std::string_view where);
// The least automaton that accepts the same texts, numbered in the order in which states are met from the start.
ByteDfa minimise(const ClassDfa& dfa);

}  // namespace deeptail
