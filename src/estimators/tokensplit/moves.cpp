#include "estimators/tokensplit/moves.h"

#include <algorithm>
#include <numeric>

#include "core/random.h"

namespace deeptail {

namespace {

// Numbers of one move, in order.
class Draws {
 public:
  explicit Draws(MoveIndex at) : at_(at) {}
  std::uint64_t next() {
    if (slot_ % 2 == 0) pair_ = uniform64_pair({at_.seed, Stream::kMoves}, at_.index, slot_ / 2);
    return pair_[slot_++ % 2];
  }
  double unit() { return unit_double(next()); }

 private:
  MoveIndex at_;
  std::uint32_t slot_ = 0;
  std::array<std::uint64_t, 2> pair_{};
};

}  // namespace

std::vector<double> cumulative_of(std::span<const double> weights) {
  std::vector<double> cumulative(weights.size());
  std::partial_sum(weights.begin(), weights.end(), cumulative.begin());
  return cumulative;
}

Move propose_move(const Distribution& dist, std::span<const std::size_t> free, const MoveSettings& settings,
                  MoveIndex at, std::span<TokenId> tokens) {
  const MoveRule<std::size_t> rule = {.cumulative = settings.cumulative.data(),
                                      .length = static_cast<std::uint32_t>(settings.cumulative.size()),
                                      .free = free.data(),
                                      .n_free = static_cast<std::uint32_t>(free.size()),
                                      .block = static_cast<std::uint32_t>(settings.block),
                                      .suffix_share = settings.suffix_share,
                                      .redraw_share = settings.suffix_share + settings.block_share};
  Draws draws(at);
  Move move{.first = tokens.size()};
  move.kind = choose_positions(rule, draws, [&](std::size_t position) {
    const TokenId token = dist.table(position).draw(draws.next());
    if (token == tokens[position]) return;
    tokens[position] = token;
    move.changed = true;
    move.first = std::min(move.first, position);
  });
  return move;
}

}  // namespace deeptail
