#include "estimators/tokensplit/scan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.h"
#include "estimators/tokensplit/candidates.h"
#include "events/next_token.h"

namespace deeptail {

namespace {

constexpr std::size_t kContexts = 16;
constexpr std::size_t kFinalContexts = 4;  // that the best are tried with
constexpr double kFinalShare = 0.25;       // of the work for it
constexpr std::size_t kWindow = 16;  // free positions before the last, at most, where tokens are planted
constexpr std::size_t kMostPairs = 4096;
constexpr std::size_t kFewestPairs = 256;
constexpr std::size_t kChunk = 1 << 14;  // tries that are scored together
// Of the work: single tokens, pairs of neighbours, pairs anywhere.
constexpr double kSingleShare = 0.2, kNearShare = 0.45, kAnywhereShare = 0.35;
// Of the plants: single tokens, neighbours, pairs anywhere.
constexpr double kAlonePlanted = 0.15, kNearPlanted = 0.5, kAnywherePlanted = 0.35;
constexpr double kCrossShare = 0.5;  // of the near pairs: the best last tokens with all others

// The scan for one event.
template <class Place>
class TokenScan {
 public:
  TokenScan(const Place& place, std::uint64_t seed, ThreadPool& pool, Meter* meter)
      : place_(place), pool_(pool), meter_(meter), seed_(seed), dist_(*place.problem.law.tables()) {
    contexts_ = sample_inputs(place.problem.law, seed, 0, kContexts, pool);
    std::vector<std::size_t> free = free_positions(dist_);
    last_ = free.back();
    free.pop_back();
    groups_.push_back({{free.back()}, &dist_.table(free.back())});
    const std::size_t window = std::min(kWindow, free.size());
    for (std::size_t i = free.size() - window; i < free.size(); ++i) add_to_groups(free[i]);
  }

  ScanResult run(double flops) {
    std::vector<Candidate> lasts = single_lasts(), nears = single_others(0), others;
    for (std::size_t g = 1; g < groups_.size(); ++g) {
      const auto of_group = single_others(g);
      others.insert(others.end(), of_group.begin(), of_group.end());
    }
    const auto contexts =
        std::min(kContexts,
                 static_cast<std::size_t>(kSingleShare * flops / (cost(lasts) + cost(nears) + cost(others))));
    if (contexts < 2) return {};
    try_all(lasts, contexts);
    try_all(nears, contexts);
    try_all(others, contexts);
    std::vector<Candidate> near = near_pairs(lasts, nears, kNearShare * flops);
    std::vector<Candidate> anywhere = anywhere_pairs(lasts, others, kAnywhereShare * flops);
    std::vector<Candidate> alone = std::move(lasts);
    alone.insert(alone.end(), nears.begin(), nears.end());
    alone.insert(alone.end(), others.begin(), others.end());
    std::vector<Candidate> all;
    add_share(std::move(alone), kAlonePlanted, all);
    add_share(std::move(near), kNearPlanted, all);
    add_share(std::move(anywhere), kAnywherePlanted, all);
    return {.plants = plants_of(all, groups_, last_), .all_pairs = all_pairs_, .work = work_};
  }

 private:
  void add_to_groups(std::size_t position) {
    const TokenTable* table = &dist_.table(position);
    for (std::size_t g = 1; g < groups_.size(); ++g)
      if (groups_[g].table == table) return groups_[g].positions.push_back(position);
    groups_.push_back({{position}, table});
  }

  std::vector<Candidate> single_lasts() const {
    const TokenTable& table = dist_.table(last_);
    std::vector<Candidate> out;
    for (std::size_t i = 0; i < table.size(); ++i)
      out.push_back({.last = table.ids()[i], .log_prior = std::log(table.probability(i))});
    return out;
  }
  std::vector<Candidate> single_others(std::size_t group) const {
    const ScanGroup& g = groups_[group];
    std::vector<Candidate> out;
    for (std::size_t i = 0; i < g.table->size(); ++i)
      out.push_back({.other = g.table->ids()[i],
                     .group = group,
                     .log_prior = std::log(g.table->probability(i)) +
                                  std::log(static_cast<double>(g.positions.size()))});
    return out;
  }

  // Flops of a try: the mean over where it may be planted.
  double cost(const Candidate& c) const {
    const ModelConfig& config = place_.problem.model.config();
    if (place_.problem.event.next_token() == nullptr) return place_.problem.score_flops();
    if (c.other == kNothing) return exact_rescoring_flops(config, dist_.length(), last_);
    const auto& positions = groups_[c.group].positions;
    double flops = 0.0;
    for (const std::size_t position : positions)
      flops +=
          exact_rescoring_flops(config, dist_.length(), position) / static_cast<double>(positions.size());
    return flops;
  }
  // Of one try of each.
  double cost(std::span<const Candidate> candidates) const {
    double sum = 0.0;
    for (const Candidate& c : candidates) sum += cost(c);
    return sum;
  }

  static double mean_of(std::span<const Candidate> candidates) {
    double sum = 0.0;
    for (const Candidate& c : candidates) sum += c.mean;
    return sum / static_cast<double>(candidates.size());
  }

  std::vector<Candidate> promising(std::span<const Candidate> lasts, std::span<const Candidate> others,
                                   double tries) const {
    return promising_pairs(lasts, others, mean_of(others), static_cast<std::size_t>(std::max(0.0, tries)));
  }

  // All pairs with many contexts where that is affordable. Else those that promise most as a sum, and, since a
  // pair may be more than that, the best last tokens with every token before them.
  std::vector<Candidate> near_pairs(std::vector<Candidate> lasts, const std::vector<Candidate>& nears,
                                    double flops) {
    const double tries = flops / cost(nears[0]);
    const double all = static_cast<double>(lasts.size()) * static_cast<double>(nears.size());
    all_pairs_ = all * kFinalContexts <= tries;
    if (all_pairs_) {
      std::vector<Candidate> pairs = promising(lasts, nears, all);
      try_all(pairs, std::min(kContexts, static_cast<std::size_t>(tries / all)));
      keep_best(pairs, kMostPairs);
      return pairs;
    }
    const double first = (1.0 - kFinalShare) * tries;
    std::vector<Candidate> pairs = promising(lasts, nears, (1.0 - kCrossShare) * first);
    keep_best(lasts, static_cast<std::size_t>(kCrossShare * first / static_cast<double>(nears.size())));
    const std::vector<Candidate> crossed =
        promising(lasts, nears, static_cast<double>(lasts.size() * nears.size()));
    pairs.insert(pairs.end(), crossed.begin(), crossed.end());
    drop_twins(pairs);
    return best_of(std::move(pairs), kFinalShare * flops);
  }

  std::vector<Candidate> anywhere_pairs(const std::vector<Candidate>& lasts,
                                        const std::vector<Candidate>& others, double flops) {
    return best_of(promising(lasts, others, (1.0 - kFinalShare) * flops / cost(others[0])),
                   kFinalShare * flops);
  }

  static void drop_twins(std::vector<Candidate>& pairs) {
    const auto tie = [](const Candidate& c) { return std::tie(c.last, c.other); };
    std::sort(pairs.begin(), pairs.end(),
              [&](const Candidate& a, const Candidate& b) { return tie(a) < tie(b); });
    const auto same = [&](const Candidate& a, const Candidate& b) { return tie(a) == tie(b); };
    pairs.erase(std::unique(pairs.begin(), pairs.end(), same), pairs.end());
  }

  // One try of each, then more of the best.
  std::vector<Candidate> best_of(std::vector<Candidate> pairs, double flops) {
    if (pairs.size() < kFewestPairs) return {};
    try_all(pairs, 1);
    const auto n = static_cast<std::size_t>(flops / (kFinalContexts * cost(pairs[0])));
    keep_best(pairs, std::min(n, kMostPairs));
    try_all(pairs, kFinalContexts);
    return pairs;
  }

  // The kinds of candidates hold each other, so their worths do not add up: each has a share of its own.
  static void add_share(std::vector<Candidate> candidates, double share, std::vector<Candidate>& all) {
    double log_sum = -std::numeric_limits<double>::infinity();
    for (const Candidate& c : candidates) log_sum = log_add(log_sum, c.log_worth);
    for (Candidate& c : candidates) {
      c.log_worth += std::log(share) - log_sum;
      all.push_back(c);
    }
  }

  void try_all(std::vector<Candidate>& candidates, std::size_t contexts) {
    if (candidates.empty()) return;
    auto probe = place_.probe(contexts_, contexts, pool_);
    const std::size_t chunk = std::max<std::size_t>(1, kChunk / contexts);
    for (std::size_t first = 0; first < candidates.size() && goes_on(); first += chunk)
      try_some(std::span(candidates).subspan(first, std::min(chunk, candidates.size() - first)), first,
               contexts, probe);
    if (contexts == 1) spread_variance(candidates);
    judge(candidates, contexts);
    ++round_;
  }

  // Stopped, what it finds does not matter any more.
  bool goes_on() const { return meter_ == nullptr || meter_->goes_on(); }

  // One score says nothing of its variance: that of single tokens stands for it.
  void spread_variance(std::vector<Candidate>& candidates) const {
    for (Candidate& c : candidates) c.variance = usual_variance_;
  }

  template <class Probe>
  void try_some(std::span<Candidate> candidates, std::size_t number, std::size_t contexts, Probe& probe) {
    Inputs changed;
    changed.resize(candidates.size() * contexts, dist_.length());
    std::fill(changed.lengths.begin(), changed.lengths.end(), static_cast<std::uint32_t>(dist_.length()));
    std::vector<std::uint32_t> first_changed(changed.size());
    for (std::size_t i = 0; i < changed.size(); ++i) {
      const auto from = contexts_.row(i % contexts);
      std::copy(from.begin(), from.end(), changed.row(i).begin());
      first_changed[i] = plant(candidates[i / contexts], number * contexts + i, changed.row(i));
    }
    std::vector<double> scores(changed.size());
    work_ += probe.scores(changed, first_changed, scores);
    make_finite(scores);
    for (std::size_t i = 0; i < candidates.size(); ++i)
      take(std::span(scores).subspan(i * contexts, contexts), candidates[i]);
  }

  // Minus infinity, which a user's score may say, has no mean: the lowest of the others will do.
  static void make_finite(std::span<double> scores) {
    double lowest = 0.0;
    for (const double s : scores)
      if (std::isfinite(s)) lowest = std::min(lowest, s);
    for (double& s : scores)
      if (!std::isfinite(s)) s = lowest;
  }

  // Returns the first position that it may have changed. try_number: of this round, decides where.
  std::uint32_t plant(const Candidate& c, std::size_t try_number, std::span<TokenId> input) const {
    std::size_t first = last_;
    if (c.other != kNothing) {
      const auto& positions = groups_[c.group].positions;
      const double u = unit_double(uniform64({seed_, Stream::kMoves}, try_number, round_));
      first = positions[static_cast<std::size_t>(u * static_cast<double>(positions.size()))];
      input[first] = c.other;
    }
    if (c.last != kNothing) input[last_] = c.last;
    return static_cast<std::uint32_t>(first);
  }

  void take(std::span<const double> scores, Candidate& c) {
    const auto n = static_cast<double>(scores.size());
    c.mean = std::accumulate(scores.begin(), scores.end(), 0.0) / n;
    double squares = 0.0;
    for (const double s : scores) squares += (s - c.mean) * (s - c.mean);
    c.variance = n > 1.0 ? squares / (n - 1.0) : 0.0;
    if (n > 1.0) {
      variances_ += c.variance;
      variances_n_ += 1.0;
      usual_variance_ = variances_ / variances_n_;
    }
  }

  const Place& place_;
  ThreadPool& pool_;
  Meter* meter_;
  std::uint64_t seed_;
  const Distribution& dist_;
  std::size_t last_ = 0;
  std::vector<ScanGroup> groups_;  // the position before the last, then those of the window
  Inputs contexts_;
  bool all_pairs_ = false;
  std::uint32_t round_ = 0;
  double usual_variance_ = 0.0, variances_ = 0.0, variances_n_ = 0.0;
  Work work_;
};

}  // namespace

template <class Place>
ScanResult scan_tokens(const Place& place, double flops, std::uint64_t seed, ThreadPool& pool, Meter* meter) {
  const Distribution* tables = place.problem.law.tables();
  if (tables == nullptr || place.problem.event.n_parts() > 0 || free_positions(*tables).size() < 2) return {};
  return TokenScan<Place>(place, seed, pool, meter).run(flops);
}
template ScanResult scan_tokens(const CpuPlace&, double, std::uint64_t, ThreadPool&, Meter*);
template ScanResult scan_tokens(const ServedPlace&, double, std::uint64_t, ThreadPool&, Meter*);

}  // namespace deeptail
