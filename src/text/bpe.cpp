#include "text/bpe.h"

#include <algorithm>
#include <bit>

namespace deeptail {

namespace {
// Up to here a scan over the pairs after every merge is faster than a heap.
constexpr std::size_t kShort = 40;
constexpr std::size_t kEnd = SIZE_MAX;
}  // namespace

MergeTable::MergeTable(const std::vector<Merge>& merges, const std::vector<std::uint32_t>& ranks)
    : entries_(std::bit_ceil(2 * merges.size() + 2)), mask_(entries_.size() - 1) {
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const Merge& merge = merges[i];
    const std::uint64_t key = key_of(merge.left, merge.right);
    const std::uint32_t rank = ranks.empty() ? static_cast<std::uint32_t>(i) : ranks[i];
    entries_[slot_of(key)] = {key, rank, merge.merged};
  }
}

Bpe::Bpe(Config config)
    : symbols_(std::move(config.symbols)),
      merges_(config.merges, config.ranks),
      whole_words_(std::move(config.whole_words)) {}

void Bpe::encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
  if (!whole_words_.empty()) {
    if (const auto found = whole_words_.find(piece); found != whole_words_.end()) {
      out.push_back(found->second);
      return;
    }
  }
  if (piece.size() <= kShort)
    encode_short(piece, out);
  else
    encode_long(piece, scratch, out);
}

void Bpe::encode_short(std::string_view piece, std::vector<TokenId>& out) const {
  std::array<TokenId, kShort> ids;          // [n]
  std::array<std::uint32_t, kShort> ranks;  // [n]: of the pair (i, i + 1); the last is kNone
  std::array<TokenId, kShort> merged;       // [n]: what that pair becomes
  std::size_t n = symbols_.write(piece, ids.data());
  const auto look_up = [&](std::size_t i) {
    const MergeTable::Entry& entry = merges_.find(ids[i], ids[i + 1]);
    ranks[i] = entry.rank;
    merged[i] = entry.merged;
  };
  for (std::size_t i = 0; i + 1 < n; ++i) look_up(i);
  while (n > 1) {
    const auto best = std::min_element(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(n - 1));
    if (*best == MergeTable::kNone) break;
    const auto at = static_cast<std::size_t>(best - ranks.begin());
    ids[at] = merged[at];
    for (std::size_t i = at + 1; i + 1 < n; ++i) {
      ids[i] = ids[i + 1];
      ranks[i] = ranks[i + 1];
      merged[i] = merged[i + 1];
    }
    --n;
    if (at + 1 < n) look_up(at);
    if (at > 0) look_up(at - 1);
  }
  out.insert(out.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n));
}

// The same result in O(n log n): symbols in a linked list, candidate pairs in a heap; a candidate whose
// symbols have changed since it was pushed is skipped.
void Bpe::encode_long(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
  auto& symbols = scratch.symbols;
  auto& ids = scratch.ids;
  auto& heap = scratch.heap;
  symbols.clear();
  heap.clear();
  ids.resize(piece.size());
  ids.resize(symbols_.write(piece, ids.data()));
  for (std::size_t i = 0; i < ids.size(); ++i)
    symbols.push_back({ids[i], i == 0 ? kEnd : i - 1, i + 1 == ids.size() ? kEnd : i + 1});

  const auto after = [](const Pair& a, const Pair& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  };
  const auto candidate = [&](std::size_t at) {
    const TokenId left = symbols[at].id, right = symbols[symbols[at].next].id;
    return Pair{merges_.find(left, right).rank, at, left, right};
  };
  const auto push = [&](std::size_t at) {
    if (const Pair pair = candidate(at); pair.rank != MergeTable::kNone) {
      heap.push_back(pair);
      std::push_heap(heap.begin(), heap.end(), after);
    }
  };
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
    if (const Pair pair = candidate(i); pair.rank != MergeTable::kNone) heap.push_back(pair);
  std::make_heap(heap.begin(), heap.end(), after);

  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), after);
    const Pair pair = heap.back();
    heap.pop_back();
    Symbol& left = symbols[pair.at];
    if (left.id != pair.left || left.next == kEnd || symbols[left.next].id != pair.right) continue;
    Symbol& right = symbols[left.next];
    left.id = merges_.find(pair.left, pair.right).merged;
    left.next = right.next;
    right.id = Symbols::kNoToken;
    if (left.next != kEnd) {
      symbols[left.next].previous = pair.at;
      push(pair.at);
    }
    if (left.previous != kEnd) push(left.previous);
  }
  for (std::size_t i = 0; i != kEnd; i = symbols[i].next) out.push_back(symbols[i].id);
}

}  // namespace deeptail
