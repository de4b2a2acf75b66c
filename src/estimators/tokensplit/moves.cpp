#include "estimators/tokensplit/moves.h"

#include <algorithm>
#include <numeric>

#include "core/random.h"

namespace deeptail {

namespace {

constexpr std::size_t kLongestSuffix = 8;  // free positions of a suffix move, at most

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

std::size_t pick(const std::vector<double>& cumulative, double u) {
  const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), u * cumulative.back());
  return static_cast<std::size_t>(std::min(found, cumulative.end() - 1) - cumulative.begin());
}

}  // namespace

std::vector<double> cumulative_of(std::span<const double> weights) {
  std::vector<double> cumulative(weights.size());
  std::partial_sum(weights.begin(), weights.end(), cumulative.begin());
  return cumulative;
}

Move propose_move(const Distribution& dist, std::span<const std::size_t> free, const MoveSettings& settings,
                  MoveIndex at, std::span<TokenId> tokens) {
  Draws draws(at);
  Move move{.first = tokens.size()};
  const auto redraw = [&](std::size_t position) {
    const TokenId token = dist.table(position).draw(draws.next());
    if (token == tokens[position]) return;
    tokens[position] = token;
    move.changed = true;
    move.first = std::min(move.first, position);
  };
  const double kind = draws.unit();
  if (kind < settings.suffix_share) {
    move.kind = MoveKind::kSuffix;
    const std::size_t longest = std::min(kLongestSuffix, free.size());
    const std::size_t count =
        1 + std::min(static_cast<std::size_t>(draws.unit() * static_cast<double>(longest)), longest - 1);
    for (const std::size_t position : free.last(count)) redraw(position);
  } else if (kind < settings.suffix_share + settings.block_share) {
    move.kind = MoveKind::kBlock;
    for (std::size_t i = 0; i < settings.block; ++i) redraw(pick(settings.cumulative, draws.unit()));
  } else {
    redraw(pick(settings.cumulative, draws.unit()));
  }
  return move;
}

}  // namespace deeptail
