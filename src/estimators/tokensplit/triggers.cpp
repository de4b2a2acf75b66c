#include "estimators/tokensplit/triggers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace deeptail {

void TriggerPool::add(TokenBatch inputs, TokenBatch answers, std::span<const std::uint32_t> hits,
                      std::span<const double> scores, std::span<const double> log_parts) {
  for (std::size_t i = 0; i < hits.size(); ++i) {
    const auto tokens = inputs.sequence(hits[i]);
    Entry& entry =
        entries_.emplace_back(Entry{scores[hits[i]], log_parts[i], {tokens.begin(), tokens.end()}, {}});
    if (answers.size() == 0) continue;
    const auto answer = answers.sequence(hits[i]);
    entry.answer.assign(answer.begin(), answer.end());
  }
}

double TriggerPool::log_largest() const {
  double top = -std::numeric_limits<double>::infinity();
  for (const Entry& entry : entries_) top = std::max(top, entry.log_part);
  return top;
}

double TriggerPool::log_sum() const {
  double sum = -std::numeric_limits<double>::infinity();
  for (const Entry& entry : entries_) sum = log_add(sum, entry.log_part);
  return sum;
}

std::vector<Trigger> TriggerPool::best(std::size_t count) const {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries_) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    if (a->margin != b->margin) return a->margin > b->margin;
    return a->tokens != b->tokens ? a->tokens < b->tokens : a->answer < b->answer;
  });
  std::vector<Trigger> best;
  for (const Entry* entry : order) {
    if (best.size() == count) break;
    if (!best.empty() && best.back().tokens == entry->tokens && best.back().answer == entry->answer) continue;
    best.push_back(
        {.sample = best.size(), .tokens = entry->tokens, .margin = entry->margin, .answer = entry->answer});
  }
  return best;
}

std::vector<DecidingPosition> TriggerPool::deciding(const Distribution& dist, std::size_t count) const {
  std::vector<std::pair<double, DecidingPosition>> order;
  const double top = log_largest();
  for (std::size_t position = 0; position < dist.length() && !entries_.empty(); ++position) {
    if (dist.table(position).size() < 2) continue;
    std::map<TokenId, double> counts;
    double sum = 0.0;
    for (const Entry& entry : entries_) {
      const double part = std::exp(entry.log_part - top);
      counts[entry.tokens[position]] += part;
      sum += part;
    }
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    const double share = most->second / sum;
    const double log_prior = dist.table(position).log_probability(most->first);
    order.push_back(
        {share * (std::log(share) - log_prior),
         {.position = position, .token = most->first, .share = share, .prior = std::exp(log_prior)}});
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<DecidingPosition> positions;
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i) positions.push_back(order[i].second);
  return positions;
}

}  // namespace deeptail
