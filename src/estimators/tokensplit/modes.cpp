#include "estimators/tokensplit/modes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace deeptail {

namespace {

constexpr std::size_t kKeyPositions = 2;

struct Mode {
  std::size_t replicas = 0;  // that saw it
  std::size_t last = 0;      // the last of them, plus 1
  double part = 0.0;
};

constexpr double kSmallPart = 0.05;  // tokens with less of the event are not told apart
constexpr TokenId kAnother = -1;

// Positions, and the tokens at each that are told apart.
using ModeKey = std::vector<std::pair<std::size_t, std::set<TokenId>>>;

// Every replica has the same say: a few hits with large weights would make all positions look decisive.
ModeKey mode_key(std::span<const TriggerPool> replicas, const Distribution& prior) {
  TriggerPool all;
  for (TriggerPool replica : replicas) {
    replica.scale(-replica.log_sum());
    all.append(replica);
  }
  const double log_all = all.log_sum();
  ModeKey key;
  for (const DecidingPosition& at : all.deciding(prior, kKeyPositions)) {
    std::map<TokenId, double> shares;
    for (const TriggerPool::Entry& entry : all.entries())
      shares[entry.tokens[at.position]] += std::exp(entry.log_part - log_all);
    std::set<TokenId> large;
    for (const auto& [token, share] : shares)
      if (share >= kSmallPart) large.insert(token);
    key.emplace_back(at.position, std::move(large));
  }
  return key;
}

}  // namespace

ModeCount count_modes(std::span<const TriggerPool> replicas, const Distribution& prior) {
  double top = -std::numeric_limits<double>::infinity();
  for (const TriggerPool& replica : replicas) top = std::max(top, replica.log_largest());
  if (std::isinf(top)) return {};
  const ModeKey key = mode_key(replicas, prior);
  std::map<std::vector<TokenId>, Mode> modes;
  double sum = 0.0;
  for (std::size_t r = 0; r < replicas.size(); ++r)
    for (const TriggerPool::Entry& entry : replicas[r].entries()) {
      std::vector<TokenId> tokens;
      for (const auto& [position, large] : key) {
        const TokenId token = entry.tokens[position];
        tokens.push_back(large.contains(token) ? token : kAnother);
      }
      Mode& mode = modes[std::move(tokens)];
      mode.replicas += std::exchange(mode.last, r + 1) != r + 1;
      const double part = std::exp(entry.log_part - top);
      mode.part += part;
      sum += part;
    }
  ModeCount out{.modes = modes.size()};
  for (const auto& [tokens, mode] : modes) {
    out.seen_by_all += mode.replicas == replicas.size();
    out.seen_by_one += mode.replicas == 1;
    if (mode.replicas == 1) out.unseen_share += mode.part / sum;
  }
  return out;
}

}  // namespace deeptail
