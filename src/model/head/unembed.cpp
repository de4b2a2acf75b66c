#include "model/head/unembed.h"

#include <algorithm>
#include <array>

namespace deeptail {

namespace {
struct Leader {
  float value = kNoLogit;
  TokenId id = -1;
  // Ids come in ascending order, so a tie keeps the smaller one.
  void challenge(float candidate, std::size_t candidate_id) {
    if (candidate > value || id < 0) value = candidate, id = static_cast<TokenId>(candidate_id);
  }
};
}  // namespace

Target::Target(std::vector<TokenId> ids, const Head& head) : ids_(std::move(ids)) {
  if (ids_.empty()) throw InputError("target: expected at least one token id, found none");
  for (const TokenId id : ids_)
    if (id < 0 || static_cast<std::size_t>(id) >= head.d_vocab())
      throw InputError("target: token id {}: expected 0 to d_vocab - 1 = {}", id, head.d_vocab() - 1);
  std::sort(ids_.begin(), ids_.end());
  ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
  if (ids_.size() == head.d_vocab())
    throw InputError("target: holds the whole vocabulary, so the event is certain");
}

std::span<const TokenId> Target::in_range(std::size_t first, std::size_t end) const {
  const auto low = std::lower_bound(ids_.begin(), ids_.end(), static_cast<TokenId>(first));
  return {low, std::lower_bound(low, ids_.end(), static_cast<TokenId>(end))};
}

void logits(const Head& head, std::size_t n, ConstRows resid, ThreadPool& pool, Rows out) {
  for_each_row_block(head, n, resid, pool,
                     [&](std::size_t first, std::size_t rows, ConstRows normed, UnembedScratch&) {
                       gemm(rows, normed, head.w_u, out.from(first));
                     });
}

void argmax(const Head& head, std::size_t n, ConstRows resid, ThreadPool& pool, std::span<TokenId> out) {
  for_each_row_block(head, n, resid, pool,
                     [&](std::size_t first, std::size_t rows, ConstRows normed, UnembedScratch& scratch) {
                       std::array<Leader, kUnembedRows> leaders{};
                       for_each_strip(rows, normed, head.w_u, scratch.strip,
                                      [&](std::size_t column, std::size_t columns, Rows strip) {
                                        for (std::size_t i = 0; i < rows; ++i) {
                                          const Best best = best_of(columns, strip.row(i));
                                          leaders[i].challenge(best.value, column + best.index);
                                        }
                                      });
                       for (std::size_t i = 0; i < rows; ++i) out[first + i] = leaders[i].id;
                     });
}

void margins(const Head& head, const Target& target, std::size_t n, ConstRows resid, ThreadPool& pool,
             std::span<Margin> out) {
  struct Pair {
    Leader target, other;
  };
  for_each_row_block(head, n, resid, pool,
                     [&](std::size_t first, std::size_t rows, ConstRows normed, UnembedScratch& scratch) {
                       std::array<Pair, kUnembedRows> leaders{};
                       for_each_strip(rows, normed, head.w_u, scratch.strip,
                                      [&](std::size_t column, std::size_t columns, Rows strip) {
                                        const auto ids = target.in_range(column, column + columns);
                                        for (std::size_t i = 0; i < rows; ++i) {
                                          for (const TokenId id : ids) {
                                            float& logit =
                                                strip.row(i)[static_cast<std::size_t>(id) - column];
                                            leaders[i].target.challenge(logit, static_cast<std::size_t>(id));
                                            logit = kNoLogit;  // out of the way of the others
                                          }
                                          const Best best = best_of(columns, strip.row(i));
                                          if (best.value > kNoLogit)
                                            leaders[i].other.challenge(best.value, column + best.index);
                                        }
                                      });
                       for (std::size_t i = 0; i < rows; ++i) {
                         const auto& [t, o] = leaders[i];
                         out[first + i] = {t.value - o.value, t.id, o.id};
                       }
                     });
}

}  // namespace deeptail
