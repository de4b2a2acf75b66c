#include <algorithm>
#include <unordered_map>
#include <utility>

#include "patterns/nfa.h"

namespace deeptail {

namespace {

using NfaState = ByteNfa::State;
using NfaSet = std::vector<std::uint32_t>;

// Before the least one is found, there may be more of them.
constexpr std::size_t kMaxSets = 4 * kMaxDfaStates;
constexpr std::size_t kMaxSteps = 20'000'000;  // less than a second

struct NfaSetHash {
  std::size_t operator()(const NfaSet& set) const {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::uint32_t state : set) hash = (hash ^ state) * 0x100000001b3;
    return static_cast<std::size_t>(hash ^ (hash >> 29));
  }
};

// Bytes that no state tells apart.
std::vector<std::uint8_t> classes_of(const ByteNfa& nfa, bool has_edges) {
  std::vector<bool> begins(257, false);
  for (const NfaState& state : nfa.states)
    if (state.kind == NfaState::Kind::bytes && state.low <= state.high)
      begins[state.low] = begins[state.high + std::size_t{1}] = true;
  if (has_edges) begins[0x80] = begins[0xC0] = true;  // bytes that go on with a character
  if (has_edges)
    for (std::size_t byte = 1; byte < 256; ++byte)
      if (is_word_byte(static_cast<unsigned char>(byte)) !=
          is_word_byte(static_cast<unsigned char>(byte - 1)))
        begins[byte] = true;
  std::vector<std::uint8_t> class_of(256, 0);
  for (std::size_t byte = 1; byte < 256; ++byte)
    class_of[byte] = static_cast<std::uint8_t>(class_of[byte - 1] + (begins[byte] ? 1 : 0));
  return class_of;
}

class Determiniser {
 public:
  Determiniser(const ByteNfa& nfa, std::string_view where)
      : nfa_(nfa),
        where_(where),
        has_edges_(std::any_of(nfa.states.begin(), nfa.states.end(),
                               [](const NfaState& s) {
                                 return s.kind == NfaState::Kind::word_edge ||
                                        s.kind == NfaState::Kind::no_word_edge;
                               })),
        reached_(nfa.states.size(), 0) {
    dfa_.class_of = classes_of(nfa, has_edges_);
    dfa_.n_classes = dfa_.class_of[255] + std::size_t{1};
    first_byte_.resize(dfa_.n_classes);
    for (std::size_t byte = 256; byte-- > 0;)
      first_byte_[dfa_.class_of[byte]] = static_cast<unsigned char>(byte);
  }

  ClassDfa run() {
    begin();
    reach(nfa_.start, {.at_start = true});
    dfa_.start = state_of(finish(), true, false);
    for (std::uint32_t state = 0; state < sets_.size(); ++state)
      for (std::size_t c = 0; c < dfa_.n_classes; ++c) {
        const std::uint32_t next = step(state, first_byte_[c]);
        dfa_.next[state * dfa_.n_classes + c] = next;
      }
    return std::move(dfa_);
  }

 private:
  // What is known at a place of the text, for conditions without bytes.
  struct Place {
    bool at_start = false, at_end = false;
    bool knows_edge = false, is_edge = false;  // whether a word character stands on one side only
    bool in_character = false;                 // between the bytes of one
  };

  void begin() {
    ++round_;
    found_.clear();
    accepted_ = false;
  }
  // All states that are reached without a byte. A condition that does not hold here, or is not known yet, stays
  // in the set as it is.
  void reach(std::uint32_t first, const Place& place) {
    stack_.push_back(first);
    while (!stack_.empty()) {
      const std::uint32_t state = stack_.back();
      stack_.pop_back();
      if (state == ByteNfa::kNowhere || std::exchange(reached_[state], round_) == round_) continue;
      if (++n_steps_ > kMaxSteps)
        throw InputError("{}: the regular expression takes too long to become an automaton", where_);
      const NfaState& s = nfa_.states[state];
      const auto pass_if = [&](bool passes) {
        if (passes) stack_.push_back(s.next);
      };
      switch (s.kind) {
        case NfaState::Kind::bytes:
          found_.push_back(state);
          break;
        case NfaState::Kind::fork:
          stack_.push_back(s.other);
          stack_.push_back(s.next);
          break;
        case NfaState::Kind::text_start:
          pass_if(place.at_start);
          break;
        case NfaState::Kind::text_end:
          found_.push_back(state);
          pass_if(place.at_end);
          break;
        case NfaState::Kind::word_edge:
        case NfaState::Kind::no_word_edge:
          found_.push_back(state);
          pass_if(place.knows_edge && !place.in_character &&
                  place.is_edge == (s.kind == NfaState::Kind::word_edge));
          break;
        case NfaState::Kind::accept:
          accepted_ = true;
          break;
      }
    }
  }
  NfaSet finish() {
    std::sort(found_.begin(), found_.end());
    return found_;
  }

  // Sets in a place: {states, whether the byte before is a word's, whether there is none}. Once something was
  // accepted, nothing else counts.
  std::uint32_t state_of(NfaSet set, bool at_start, bool after_word) {
    if (accepted_) set = {ByteNfa::kNowhere};
    set.push_back(accepted_ ? 0u : (at_start ? 2u : 0u) + (after_word && has_edges_ ? 1u : 0u));
    const auto [found, is_new] = ids_.try_emplace(set, static_cast<std::uint32_t>(sets_.size()));
    if (!is_new) return found->second;
    if (sets_.size() >= kMaxSets)
      throw InputError("{}: the regular expression needs an automaton of more than {} states", where_,
                       kMaxSets);
    sets_.push_back(&found->first);
    dfa_.next.resize(sets_.size() * dfa_.n_classes);
    dfa_.at_end.push_back(accepts_at_end(found->first));
    return found->second;
  }
  static bool is_accepted(const NfaSet& set) { return set.front() == ByteNfa::kNowhere; }
  static bool at_start(const NfaSet& set) { return (set.back() & 2u) != 0; }
  static bool after_word(const NfaSet& set) { return (set.back() & 1u) != 0; }

  // The set as it is once more is known of its place.
  void reach_all(const NfaSet& set, const Place& place) {
    begin();
    for (std::size_t i = 0; i + 1 < set.size(); ++i) reach(set[i], place);
  }

  bool accepts_at_end(const NfaSet& set) {
    if (is_accepted(set)) return true;
    reach_all(set, {at_start(set), true, true, after_word(set), false});
    return accepted_;
  }

  std::uint32_t step(std::uint32_t state, unsigned char byte) {
    const NfaSet& set = *sets_[state];
    if (is_accepted(set)) return state;
    const bool is_word = is_word_byte(byte);
    const bool goes_on = (byte & 0xC0) == 0x80 && !at_start(set) && !after_word(set);
    reach_all(set, {at_start(set), false, true, after_word(set) != is_word, goes_on});
    if (!accepted_) {
      from_.swap(found_);
      begin();
      for (const std::uint32_t s : from_)
        if (const NfaState& n = nfa_.states[s];
            n.kind == NfaState::Kind::bytes && n.low <= byte && byte <= n.high)
          reach(n.next, {});
      reach(nfa_.start, {});  // a match may begin here
    }
    return state_of(finish(), false, is_word);
  }

  const ByteNfa& nfa_;
  std::string_view where_;
  bool has_edges_;
  ClassDfa dfa_;
  std::vector<unsigned char> first_byte_;  // [n_classes]
  std::unordered_map<NfaSet, std::uint32_t, NfaSetHash> ids_;
  std::vector<const NfaSet*> sets_;  // [n_states], in ids_
  // Of the set that is being made.
  std::vector<std::uint32_t> reached_;  // [nfa states]: the last round that reached it
  std::uint32_t round_ = 0;
  NfaSet found_, from_, stack_;
  bool accepted_ = false;
  std::size_t n_steps_ = 0;
};

}  // namespace

ClassDfa determinise(const ByteNfa& nfa, std::string_view where) { return Determiniser(nfa, where).run(); }

}  // namespace deeptail
