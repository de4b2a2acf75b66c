// The least automaton, by refining a partition of its states (Hopcroft 1971).
#include <algorithm>
#include <numeric>
#include <utility>

#include "patterns/nfa.h"

namespace deeptail {

namespace {

// States in blocks; those of one block lie side by side.
class Partition {
 public:
  explicit Partition(std::size_t n) : order_(n), place_(n), block_of_(n, 0) {
    std::iota(order_.begin(), order_.end(), 0u);
    std::iota(place_.begin(), place_.end(), 0u);
    blocks_.push_back({0, n, 0});
  }

  std::size_t size() const { return blocks_.size(); }
  std::uint32_t block_of(std::uint32_t state) const { return block_of_[state]; }
  std::size_t size_of(std::uint32_t block) const { return blocks_[block].end - blocks_[block].begin; }
  std::span<const std::uint32_t> states(std::uint32_t block) const {
    return std::span(order_).subspan(blocks_[block].begin, size_of(block));
  }

  // Moves a state to the front of its block, once.
  void mark(std::uint32_t state) {
    Block& block = blocks_[block_of_[state]];
    const std::size_t front = block.begin + block.n_marked;
    if (place_[state] < front) return;
    if (block.n_marked++ == 0) touched_.push_back(block_of_[state]);
    swap_places(state, order_[front]);
  }
  // Cuts every block that holds marked states and others: on_cut(old block, new block).
  template <class OnCut>
  void cut(const OnCut& on_cut) {
    for (const std::uint32_t old : std::exchange(touched_, {})) {
      const std::size_t n_marked = std::exchange(blocks_[old].n_marked, 0);
      if (n_marked == size_of(old)) continue;
      const auto made = static_cast<std::uint32_t>(blocks_.size());
      const std::size_t begin = blocks_[old].begin;
      blocks_.push_back({begin, begin + n_marked, 0});
      blocks_[old].begin += n_marked;
      for (const std::uint32_t state : states(made)) block_of_[state] = made;
      on_cut(old, made);
    }
  }

 private:
  struct Block {
    std::size_t begin, end, n_marked;
  };
  void swap_places(std::uint32_t a, std::uint32_t b) {
    std::swap(order_[place_[a]], order_[place_[b]]);
    std::swap(place_[a], place_[b]);
  }

  std::vector<std::uint32_t> order_, place_, block_of_, touched_;
  std::vector<Block> blocks_;
};

// Who leads to a state with a class of bytes.
struct Predecessors {
  std::vector<std::uint32_t> first;  // [n_classes * n_states + 1]
  std::vector<std::uint32_t> from;

  explicit Predecessors(const ClassDfa& dfa) : first(dfa.next.size() + 1, 0), from(dfa.next.size()) {
    const std::size_t n = dfa.size(), k = dfa.n_classes;
    for (std::size_t i = 0; i < dfa.next.size(); ++i) ++first[(i % k) * n + dfa.next[i] + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<std::uint32_t> at(first.begin(), first.end() - 1);
    for (std::size_t i = 0; i < dfa.next.size(); ++i)
      from[at[(i % k) * n + dfa.next[i]]++] = static_cast<std::uint32_t>(i / k);
  }
  std::span<const std::uint32_t> of(std::uint32_t state, std::size_t c, std::size_t n) const {
    const std::size_t i = c * n + state;
    return std::span(from).subspan(first[i], first[i + 1] - first[i]);
  }
};

Partition equivalent_states(const ClassDfa& dfa) {
  const std::size_t n = dfa.size();
  const Predecessors predecessors(dfa);
  Partition partition(n);
  std::vector<std::uint32_t> waiting = {0};
  std::vector<std::uint8_t> is_waiting = {1};
  const auto on_cut = [&](std::uint32_t old, std::uint32_t made) {
    is_waiting.push_back(0);
    const std::uint32_t chosen =
        is_waiting[old] || partition.size_of(made) <= partition.size_of(old) ? made : old;
    is_waiting[chosen] = 1;
    waiting.push_back(chosen);
  };
  for (std::uint32_t state = 0; state < n; ++state)
    if (dfa.at_end[state]) partition.mark(state);
  partition.cut(on_cut);
  while (!waiting.empty()) {
    const std::uint32_t block = waiting.back();
    waiting.pop_back();
    is_waiting[block] = 0;
    const auto states = partition.states(block);
    const std::vector<std::uint32_t> splitter(states.begin(), states.end());
    for (std::size_t c = 0; c < dfa.n_classes; ++c) {
      for (const std::uint32_t state : splitter)
        for (const std::uint32_t from : predecessors.of(state, c, n)) partition.mark(from);
      partition.cut(on_cut);
    }
  }
  return partition;
}

}  // namespace

ByteDfa minimise(const ClassDfa& dfa) {
  const Partition partition = equivalent_states(dfa);
  constexpr std::uint32_t kNoNumber = 0xffffffff;
  std::vector<std::uint32_t> number(partition.size(), kNoNumber), met;
  const auto number_of = [&](std::uint32_t state) {
    const std::uint32_t block = partition.block_of(state);
    if (number[block] == kNoNumber) {
      number[block] = static_cast<std::uint32_t>(met.size());
      met.push_back(state);
    }
    return number[block];
  };
  ByteDfa out;
  out.start = number_of(dfa.start);
  for (std::size_t i = 0; i < met.size(); ++i) {
    const std::uint32_t state = met[i];
    out.next.emplace_back();
    for (std::size_t byte = 0; byte < 256; ++byte)
      out.next[i][byte] = number_of(dfa.next[state * dfa.n_classes + dfa.class_of[byte]]);
    const bool stays =
        std::all_of(out.next[i].begin(), out.next[i].end(), [&](auto next) { return next == i; });
    out.accepting_at_end.push_back(dfa.at_end[state]);
    // Whatever follows, it is accepted: the match is certain.
    out.accepting.push_back(stays && dfa.at_end[state]);
  }
  return out;
}

}  // namespace deeptail
