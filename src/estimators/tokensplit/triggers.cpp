#include "estimators/tokensplit/triggers.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace deeptail {

void TriggerPool::add(TokenBatch inputs, std::span<const double> scores) {
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] < 0.0) continue;
    const auto tokens = inputs.sequence(i);
    entries_.push_back({scores[i], {tokens.begin(), tokens.end()}});
  }
}

std::vector<Trigger> TriggerPool::best(std::size_t count) const {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries_) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return a->margin != b->margin ? a->margin > b->margin : a->tokens < b->tokens;
  });
  std::vector<Trigger> best;
  for (const Entry* entry : order) {
    if (best.size() == count) break;
    if (!best.empty() && best.back().tokens == entry->tokens) continue;
    best.push_back({.sample = best.size(), .tokens = entry->tokens, .margin = entry->margin});
  }
  return best;
}

std::vector<DecidingPosition> TriggerPool::deciding(const Distribution& dist, std::size_t count) const {
  std::vector<std::pair<double, DecidingPosition>> order;
  for (std::size_t position = 0; position < dist.length() && !entries_.empty(); ++position) {
    if (dist.table(position).size() < 2) continue;
    std::map<TokenId, double> counts;
    for (const Entry& entry : entries_) counts[entry.tokens[position]] += 1.0;
    const auto top = std::max_element(counts.begin(), counts.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
    const double share = top->second / static_cast<double>(entries_.size());
    const double log_prior = dist.table(position).log_probability(top->first);
    order.push_back(
        {share * (std::log(share) - log_prior),
         {.position = position, .token = top->first, .share = share, .prior = std::exp(log_prior)}});
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<DecidingPosition> positions;
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i) positions.push_back(order[i].second);
  return positions;
}

}  // namespace deeptail
