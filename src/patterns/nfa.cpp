#include "patterns/nfa.h"

#include <map>
#include <tuple>

#include "deeptail/core.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxNfaStates = 100'000, kMaxNodes = 1'000'000;

// Builds from the end: what follows a part is there when the part is built.
class NfaBuilder {
 public:
  explicit NfaBuilder(std::string_view where) : where_(where) {}

  ByteNfa build(const RegexNode& tree) {
    const std::uint32_t accept = add({.kind = Kind::accept});
    nfa_.start = before(tree, accept);
    return std::move(nfa_);
  }

 private:
  using Kind = ByteNfa::State::Kind;

  std::uint32_t add(const ByteNfa::State& state) {
    if (nfa_.states.size() >= kMaxNfaStates) too_large();
    nfa_.states.push_back(state);
    return static_cast<std::uint32_t>(nfa_.states.size() - 1);
  }
  [[noreturn]] void too_large() const {
    throw InputError("{}: the regular expression is too large once its repetitions are written out", where_);
  }

  // The state from which `node` is read and `next` reached.
  std::uint32_t before(const RegexNode& node, std::uint32_t next) {
    if (++n_nodes_ > kMaxNodes) too_large();
    switch (node.kind) {
      case RegexNode::Kind::set:
        return before_set(node.set, next);
      case RegexNode::Kind::sequence:
        for (auto part = node.parts.rbegin(); part != node.parts.rend(); ++part) next = before(*part, next);
        return next;
      case RegexNode::Kind::choice:
        return before_choice(node, next);
      case RegexNode::Kind::repeat:
        return before_repeat(node, next);
      case RegexNode::Kind::text_start:
        return add({.kind = Kind::text_start, .next = next});
      case RegexNode::Kind::text_end:
        return add({.kind = Kind::text_end, .next = next});
      case RegexNode::Kind::word_edge:
        return add({.kind = Kind::word_edge, .next = next});
      case RegexNode::Kind::no_word_edge:
        return add({.kind = Kind::no_word_edge, .next = next});
    }
    return next;
  }

  std::uint32_t fork(std::uint32_t a, std::uint32_t b) {
    if (a == b || b == ByteNfa::kNowhere) return a;
    return add({.kind = Kind::fork, .next = a, .other = b});
  }

  std::uint32_t before_choice(const RegexNode& node, std::uint32_t next) {
    std::uint32_t start = before(node.parts.back(), next);
    for (std::size_t i = node.parts.size() - 1; i-- > 0;) start = fork(before(node.parts[i], next), start);
    return start;
  }

  std::uint32_t before_repeat(const RegexNode& node, std::uint32_t next) {
    std::uint32_t start = next;
    if (node.most == RegexNode::kNoLimit) {
      start = add({.kind = Kind::fork, .other = next});
      const std::uint32_t again = before(node.parts[0], start);
      nfa_.states[start].next = again;
    } else {
      for (std::size_t i = node.least; i < node.most; ++i) start = fork(before(node.parts[0], start), next);
    }
    for (std::size_t i = 0; i < node.least; ++i) start = before(node.parts[0], start);
    return start;
  }

  // Characters whose last bytes are the same share the states of these.
  std::uint32_t before_set(const CodePoints& set, std::uint32_t next) {
    std::map<std::tuple<std::uint8_t, std::uint8_t, std::uint32_t>, std::uint32_t> made;
    std::uint32_t start = ByteNfa::kNowhere;
    for (const ByteRanges& ranges : utf8_ranges(set)) {
      std::uint32_t state = next;
      for (auto r = ranges.rbegin(); r != ranges.rend(); ++r) {
        const auto [found, is_new] = made.try_emplace({r->low, r->high, state}, 0);
        if (is_new) found->second = add({.kind = Kind::bytes, .low = r->low, .high = r->high, .next = state});
        state = found->second;
      }
      start = fork(state, start);
    }
    // No character at all: a byte that there is not.
    return start != ByteNfa::kNowhere ? start : add({.kind = Kind::bytes, .low = 1, .high = 0, .next = next});
  }

  std::string_view where_;
  ByteNfa nfa_;
  std::size_t n_nodes_ = 0;
};

}  // namespace

ByteNfa nfa_of(const RegexNode& tree, std::string_view where) { return NfaBuilder(where).build(tree); }

}  // namespace deeptail
