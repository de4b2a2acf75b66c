#include "estimators/tokensplit/near_hits.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace deeptail {

namespace {

constexpr std::size_t kPositions = 2;      // the last free ones
constexpr std::size_t kMostContexts = 64;  // hits that are changed
constexpr std::size_t kKept = 64;
constexpr std::size_t kAlike = 2;  // that differ from their hits by the same token

struct Near {
  double log_worth;
  std::size_t context, position;
  TokenId token;
  double margin;
};

std::vector<const TriggerPool::Entry*> distinct(const TriggerPool& found) {
  std::set<std::vector<TokenId>> seen;
  std::vector<const TriggerPool::Entry*> out;
  for (const TriggerPool::Entry& entry : found.entries())
    if (seen.insert(entry.tokens).second) out.push_back(&entry);
  return out;
}

Inputs inputs_of(std::span<const TriggerPool::Entry* const> hits, std::size_t length) {
  Inputs out;
  out.resize(hits.size(), length);
  for (std::size_t i = 0; i < hits.size(); ++i) {
    std::copy(hits[i]->tokens.begin(), hits[i]->tokens.end(), out.row(i).begin());
    out.lengths[i] = static_cast<std::uint32_t>(length);
  }
  return out;
}

// Every hit with every token of a table at its position.
template <class Probe>
std::vector<Near> all_near(std::span<const TriggerPool::Entry* const> hits, const Inputs& contexts,
                           const TokenTable& table, std::size_t position, double steepness, Probe& probe,
                           Work& work) {
  constexpr std::size_t kAtOnce = 128;  // tokens
  std::vector<Near> out;
  for (std::size_t from = 0; from < table.size(); from += kAtOnce) {
    const std::size_t n = std::min(kAtOnce, table.size() - from);
    Inputs changed;
    changed.resize(n * hits.size(), contexts.max_length);
    for (std::size_t i = 0; i < changed.size(); ++i) {
      const auto context = std::span(contexts.tokens).subspan(i % hits.size() * contexts.max_length);
      std::copy_n(context.begin(), contexts.max_length, changed.row(i).begin());
      changed.lengths[i] = contexts.lengths[i % hits.size()];
      changed.row(i)[position] = table.ids()[from + i / hits.size()];
    }
    const std::vector<std::uint32_t> first(changed.size(), static_cast<std::uint32_t>(position));
    std::vector<double> scores(changed.size());
    work += probe.scores(changed, first, scores);
    for (std::size_t i = 0; i < changed.size(); ++i) {
      const TriggerPool::Entry& hit = *hits[i % hits.size()];
      const std::size_t token = from + i / hits.size();
      const double gain = scores[i] - hit.margin;
      if (!std::isfinite(scores[i]) || gain <= 0.0) continue;
      out.push_back({std::log(table.probability(token)) + steepness * gain, i % hits.size(), position,
                     table.ids()[token], scores[i]});
    }
  }
  return out;
}

// How many hits may be changed for so many flops.
std::size_t affordable(const TokenProblem& problem, std::span<const std::size_t> positions, double flops) {
  double of_one = 0.0;
  for (const std::size_t position : positions)
    of_one += static_cast<double>(problem.law.tables()->table(position).size()) *
              problem.event.change_flops(problem.model.config(), problem.law, position);
  return static_cast<std::size_t>(std::min(flops / of_one, static_cast<double>(kMostContexts)));
}

// The best, few of each token.
TriggerPool best_of(std::vector<Near> all, const Inputs& contexts, double log_sum) {
  std::stable_sort(all.begin(), all.end(),
                   [](const Near& a, const Near& b) { return a.log_worth > b.log_worth; });
  std::map<std::pair<std::size_t, TokenId>, std::size_t> alike;
  std::vector<TriggerPool::Entry> kept;
  for (const Near& near : all) {
    if (kept.size() == kKept) break;
    if (alike[{near.position, near.token}]++ >= kAlike) continue;
    const auto from = std::span(contexts.tokens).subspan(near.context * contexts.max_length);
    std::vector<TokenId> tokens(from.begin(),
                                from.begin() + static_cast<std::ptrdiff_t>(contexts.max_length));
    tokens[near.position] = near.token;
    kept.push_back({.margin = near.margin, .log_part = 0.0, .tokens = std::move(tokens), .answer = {}});
  }
  TriggerPool out;
  for (TriggerPool::Entry& entry : kept) {
    entry.log_part = log_sum - std::log(static_cast<double>(kept.size()));
    out.append(std::move(entry));
  }
  return out;
}

}  // namespace

template <class Place>
NearHits near_hits(const Place& place, const TriggerPool& found, double steepness, double flops,
                   ThreadPool& pool) {
  const Distribution& dist = *place.problem.law.tables();
  std::vector<std::size_t> positions = free_positions(dist);
  if (positions.size() > kPositions)
    positions.erase(positions.begin(), positions.end() - static_cast<std::ptrdiff_t>(kPositions));
  NearHits out;
  std::vector<const TriggerPool::Entry*> hits = distinct(found);
  const std::size_t n = std::min(hits.size(), affordable(place.problem, positions, flops));
  if (n == 0) return out;
  for (std::size_t i = 0; i < n; ++i) hits[i] = hits[i * hits.size() / n];
  hits.resize(n);
  Inputs contexts = inputs_of(hits, dist.length());
  auto probe = place.probe(contexts, n, pool);
  std::vector<Near> all;
  for (const std::size_t position : positions) {
    const std::vector<Near> here =
        all_near(hits, contexts, dist.table(position), position, steepness, probe, out.work);
    all.insert(all.end(), here.begin(), here.end());
  }
  out.hits = best_of(std::move(all), contexts, found.log_sum());
  return out;
}
template NearHits near_hits(const CpuPlace&, const TriggerPool&, double, double, ThreadPool&);
template NearHits near_hits(const ServedPlace&, const TriggerPool&, double, double, ThreadPool&);

}  // namespace deeptail
