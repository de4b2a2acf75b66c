// From bytes to tokens. Tokens are walked in the order of their bytes, so that what two of them begin with is
// stepped through once: a state takes as many steps as the vocabulary has beginnings, not bytes.
#include <algorithm>
#include <numeric>
#include <utility>

#include "core/memory.h"
#include "deeptail/patterns.h"

namespace deeptail {

namespace {

constexpr std::uint32_t kNotSeen = 0xffffffff;

// Texts in the order of their bytes, each with what it shares with the one before.
struct SortedTexts {
  std::vector<std::uint32_t> order;   // [n]
  std::vector<std::uint32_t> shared;  // [n], bytes
  std::size_t longest = 0;

  explicit SortedTexts(const std::vector<std::string>& texts) : order(texts.size()), shared(texts.size()) {
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return texts[a] < texts[b]; });
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::string& text = texts[order[i]];
      longest = std::max(longest, text.size());
      if (i == 0) continue;
      const std::string& before = texts[order[i - 1]];
      const auto end = std::mismatch(text.begin(), text.end(), before.begin(), before.end()).first;
      shared[i] = static_cast<std::uint32_t>(end - text.begin());
    }
  }
};

bool is_dead(const ByteDfa& dfa, std::uint32_t state) {
  return !dfa.accepting_at_end[state] && std::all_of(dfa.next[state].begin(), dfa.next[state].end(),
                                                     [&](std::uint32_t next) { return next == state; });
}

}  // namespace

class TokenAutomatonBuilder {
 public:
  TokenAutomatonBuilder(std::size_t d_vocab, std::span<const TokenId> stop) : stop_(stop) {
    if (d_vocab == 0) throw InputError("a pattern needs a vocabulary; expected at least one token");
    a_.d_vocab_ = d_vocab;
    for (const TokenId id : stop) check_id(id, "stop token");
    for (const std::uint32_t state : {add_state(true), add_state(false)})
      std::fill_n(row(state), d_vocab, state);
  }

  void check_id(TokenId id, const char* what) const {
    if (id < 0 || static_cast<std::size_t>(id) >= a_.d_vocab_)
      throw InputError("{} {}: expected 0 to {}", what, id, a_.d_vocab_ - 1);
  }

  std::uint32_t add_state(bool at_end) {
    a_.at_end_.push_back(at_end);
    a_.next_.resize(a_.next_.size() + a_.d_vocab_);
    return static_cast<std::uint32_t>(a_.at_end_.size() - 1);
  }
  std::uint32_t* row(std::uint32_t state) { return a_.next_.data() + state * a_.d_vocab_; }

  void add_pattern(const ByteDfa& dfa, const TokenTexts& texts) {
    check_memory("the automaton of a pattern over tokens",
                 static_cast<double>(dfa.size() + 3) * static_cast<double>(a_.d_vocab_) * 4.0,
                 "ask for a shorter pattern");
    const SortedTexts sorted(texts.text);
    state_of_.assign(dfa.size(), kNotSeen);
    a_.start_ = a_.text_start_ = state_of(dfa, dfa.start);
    std::uint32_t of_text = kNotSeen;
    if (!texts.first.empty() && a_.start_ > TokenAutomaton::dead()) {
      of_text = a_.text_start_ = add_state(dfa.accepting_at_end[dfa.start] != 0);
      fill_row(dfa, dfa.start, texts.first, SortedTexts(texts.first), of_text);
      for (std::size_t token = 0; token < a_.d_vocab_; ++token)
        if (texts.text[token].empty()) row(of_text)[token] = of_text;
    }
    for (std::size_t done = 0; done < byte_states_.size(); ++done)
      fill_row(dfa, byte_states_[done], texts.text, sorted, state_of_[byte_states_[done]]);
  }

  void end_at_stop_tokens() {
    for (std::uint32_t state = 0; state < a_.at_end_.size(); ++state)
      for (const TokenId id : stop_)
        if (state != TokenAutomaton::dead())
          row(state)[id] = a_.at_end_[state] ? TokenAutomaton::accepted() : TokenAutomaton::dead();
  }

  // States from which these tokens lead to no acceptance are dead() too.
  void drop_hopeless();
  // counts: whether a token has text.
  void find_roots(const std::vector<std::uint8_t>& counts);

  TokenAutomaton finish() { return std::move(a_); }
  TokenAutomaton& automaton() { return a_; }

 private:
  // The state over tokens of a state over bytes; a new one is put at the end of byte_states_.
  std::uint32_t state_of(const ByteDfa& dfa, std::uint32_t byte_state) {
    std::uint32_t& state = state_of_[byte_state];
    if (state != kNotSeen) return state;
    if (dfa.accepting[byte_state]) return state = TokenAutomaton::accepted();
    if (is_dead(dfa, byte_state)) return state = TokenAutomaton::dead();
    byte_states_.push_back(byte_state);
    return state = add_state(dfa.accepting_at_end[byte_state] != 0);
  }

  void fill_row(const ByteDfa& dfa, std::uint32_t from, const std::vector<std::string>& texts,
                const SortedTexts& sorted, std::uint32_t state) {
    path_.resize(sorted.longest + 1);  // [i]: after i bytes of the text before
    path_[0] = from;
    for (std::size_t i = 0; i < sorted.order.size(); ++i) {
      const std::string& text = texts[sorted.order[i]];
      for (std::size_t at = sorted.shared[i]; at < text.size(); ++at)
        path_[at + 1] = dfa.next[path_[at]][static_cast<unsigned char>(text[at])];
      const std::uint32_t next = state_of(dfa, path_[text.size()]);  // may move the rows
      row(state)[sorted.order[i]] = next;
    }
  }

  TokenAutomaton a_;
  std::span<const TokenId> stop_;
  std::vector<std::uint32_t> state_of_;     // [byte states]
  std::vector<std::uint32_t> byte_states_;  // that have a state over tokens, in the order of these
  std::vector<std::uint32_t> path_;
};

void TokenAutomatonBuilder::drop_hopeless() {
  const auto n = static_cast<std::uint32_t>(a_.at_end_.size());
  std::vector<std::vector<std::uint32_t>> before(n);  // states that lead to each
  std::vector<std::uint32_t> seen_from(n, kNotSeen);
  for (std::uint32_t state = 0; state < n; ++state)
    for (std::size_t token = 0; token < a_.d_vocab_; ++token)
      if (const std::uint32_t next = row(state)[token]; seen_from[next] != state) {
        seen_from[next] = state;
        before[next].push_back(state);
      }
  std::vector<std::uint8_t> hopeful(a_.at_end_);
  std::vector<std::uint32_t> queue;
  for (std::uint32_t state = 0; state < n; ++state)
    if (hopeful[state]) queue.push_back(state);
  while (!queue.empty()) {
    const std::uint32_t state = queue.back();
    queue.pop_back();
    for (const std::uint32_t from : before[state])
      if (!std::exchange(hopeful[from], 1)) queue.push_back(from);
  }
  const auto kept = [&](std::uint32_t state) { return hopeful[state] ? state : TokenAutomaton::dead(); };
  for (std::uint32_t& next : a_.next_) next = kept(next);
  a_.start_ = kept(a_.start_);
  a_.text_start_ = kept(a_.text_start_);
}

void TokenAutomatonBuilder::find_roots(const std::vector<std::uint8_t>& counts) {
  const auto n = static_cast<std::uint32_t>(a_.at_end_.size());
  const auto is_open = [](std::uint32_t state) { return state > TokenAutomaton::dead(); };
  std::vector<std::uint32_t> usual(n, kNotSeen);  // where most tokens lead to
  std::vector<std::uint32_t> tokens_to(n);
  for (std::uint32_t state = 2; state < n; ++state) {
    std::fill(tokens_to.begin(), tokens_to.end(), 0u);
    for (std::size_t token = 0; token < a_.d_vocab_; ++token) tokens_to[row(state)[token]] += counts[token];
    const auto most = std::max_element(tokens_to.begin() + 2, tokens_to.end());
    if (*most > 0) usual[state] = static_cast<std::uint32_t>(most - tokens_to.begin());
  }
  a_.root_.assign(n, 0);
  std::vector<std::uint32_t> visited_from(n, kNotSeen);
  for (std::uint32_t first = 2; first < n; ++first) {
    std::uint32_t state = first;
    for (; state != kNotSeen && visited_from[state] == kNotSeen; state = usual[state])
      visited_from[state] = first;
    if (state == kNotSeen || visited_from[state] != first) continue;
    const std::uint32_t on_cycle = state;  // a new cycle
    do {
      a_.root_[state] = 1;
      state = usual[state];
    } while (state != on_cycle);
  }
  for (const std::uint32_t start : {a_.start_, a_.text_start_})
    if (is_open(start)) a_.root_[start] = 1;
}

TokenAutomaton::TokenAutomaton(const ByteDfa& dfa, const TokenTexts& texts, std::span<const TokenId> stop) {
  TokenAutomatonBuilder builder(texts.text.size(), stop);
  builder.add_pattern(dfa, texts);
  builder.end_at_stop_tokens();
  builder.drop_hopeless();
  std::vector<std::uint8_t> counts;
  for (const std::string& text : texts.text) counts.push_back(!text.empty());
  builder.find_roots(counts);
  *this = builder.finish();
}

TokenAutomaton TokenAutomaton::any_of(std::span<const TokenId> ids, std::size_t d_vocab,
                                      std::span<const TokenId> stop) {
  TokenAutomatonBuilder builder(d_vocab, stop);
  const std::uint32_t start = builder.add_state(false);
  std::fill_n(builder.row(start), d_vocab, start);
  builder.end_at_stop_tokens();
  for (const TokenId id : ids) {
    builder.check_id(id, "token");
    builder.row(start)[id] = accepted();
  }
  builder.automaton().start_ = builder.automaton().text_start_ = start;
  builder.drop_hopeless();
  builder.find_roots(std::vector<std::uint8_t>(d_vocab, 1));
  return builder.finish();
}

}  // namespace deeptail
