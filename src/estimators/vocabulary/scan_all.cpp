#include "estimators/vocabulary/scan_all.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/statistics.h"
#include "deeptail/splitting.h"
#include "estimators/vocabulary/prospects.h"

namespace deeptail {

namespace {

constexpr double kSinglesShare = 0.3;                                          // of the passes
constexpr std::size_t kSinglesKept = 64, kNearKept = 256, kAnywhereKept = 96;  // for each target
constexpr std::size_t kFewestWanted = 16, kMostWanted = 1024;  // pairs of a kind that a target asks for
// Of what is planted for a target: single tokens, neighbours, pairs anywhere.
constexpr double kSinglePart = 0.15, kNearPart = 0.5, kAnywherePart = 0.35;
constexpr double kHeavierTails = 1.3;  // margins have heavier tails than normal ones

// log of the standard normal's chance to be below z, from a table: good to 1e-3.
class LogNormalChance {
 public:
  LogNormalChance() {
    for (std::size_t i = 0; i < kSteps + 2; ++i)
      table_.push_back(log_normal_tail(kFar - static_cast<double>(i) / kPerUnit));
  }
  double operator()(double z) const {
    const double at = (std::clamp(z, -kFar, kFar) + kFar) * kPerUnit;
    const auto i = static_cast<std::size_t>(at);
    return table_[i] + (at - static_cast<double>(i)) * (table_[i + 1] - table_[i]);
  }

 private:
  static constexpr double kFar = 38.0, kPerUnit = 32.0;
  static constexpr std::size_t kSteps = static_cast<std::size_t>(2.0 * kFar * kPerUnit);
  std::vector<double> table_;
};

float median_of(std::vector<float> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Contexts that each single token is tried in.
std::size_t contexts_for(double passes, std::size_t n_singles) {
  return static_cast<std::size_t>(kSinglesShare * passes / static_cast<double>(n_singles));
}
constexpr std::size_t kFewestContexts = 2;  // below, there is no scan

class AllScan {
 public:
  AllScan(LogitTries& tries, const PlantSites& sites, std::size_t n_targets, ThreadPool& pool,
          const Watch& watch)
      : tries_(tries),
        sites_(sites),
        n_(n_targets),
        pool_(pool),
        watch_(watch),
        usual_(n_targets),
        near_(n_targets, BestProspects(kNearKept)),
        anywhere_(n_targets, BestProspects(kAnywhereKept)) {}

  std::vector<TargetScan> run(double passes) {
    total_ = passes;
    add_singles();
    const std::size_t contexts = contexts_for(passes, singles_.size());
    if (contexts < kFewestContexts) return {};
    if (!try_singles(std::min(contexts, LogitTries::kMostContexts))) return {};
    const double left = passes - static_cast<double>(tries_.passes());
    const std::vector<PlantedTokens> pairs = wanted_pairs(left);
    const auto each = static_cast<std::size_t>(left / static_cast<double>(pairs.size()));
    if (!try_pairs(pairs, std::clamp<std::size_t>(each, 1, LogitTries::kMostContexts))) return {};
    return results();
  }

 private:
  struct Range {
    std::size_t begin, end;
  };

  // Of the last position, then of each group.
  void add_singles() {
    const auto add = [&](const TokenTable& table, std::uint32_t group, bool last) {
      const std::size_t begin = singles_.size();
      for (const TokenId id : table.ids())
        singles_.push_back(last ? PlantedTokens{.last = id} : PlantedTokens{.other = id, .group = group});
      ranges_.push_back({begin, singles_.size()});
    };
    add(sites_.prior.table(sites_.last), 0, true);
    for (std::uint32_t g = 0; g < sites_.groups.size(); ++g) add(*sites_.groups[g].table, g, false);
    for (const PlantedTokens& single : singles_) log_prior_.push_back(log_prior_of(single, sites_));
  }

  bool goes_on() {
    return deeptail::goes_on(watch_, progress_of(tries_.passes(), static_cast<std::uint64_t>(total_)));
  }

  bool try_singles(std::size_t contexts) {
    mean_.resize(singles_.size() * n_);
    variance_.resize(singles_.size() * n_);
    const std::size_t step = tries_.together(contexts);
    for (std::size_t first = 0; first < singles_.size(); first += step) {
      const std::size_t count = std::min(step, singles_.size() - first);
      tries_.run(std::span(singles_).subspan(first, count), contexts, [&](std::size_t i) {
        return LogitTries::Seen{std::span(mean_).subspan((first + i) * n_, n_),
                                std::span(variance_).subspan((first + i) * n_, n_)};
      });
      if (!goes_on()) return false;
    }
    pool_.for_each_block(n_, [&](std::size_t t, std::size_t) {
      std::vector<float> of_target;
      for (std::size_t s = 0; s < singles_.size(); ++s) of_target.push_back(variance_[s * n_ + t]);
      usual_[t] = std::sqrt(std::max(1e-6, static_cast<double>(median_of(std::move(of_target)))));
    });
    return true;
  }

  double mean(std::size_t single, std::size_t t) const { return static_cast<double>(mean_[single * n_ + t]); }

  Prospect prospect(const PlantedTokens& pair, double log_prior, double mean_margin, std::size_t t) const {
    const double z = mean_margin / usual_[t];
    return {pair, log_prior, z, 0.5 * (log_prior + log_chance_(z))};
  }

  // Of the tokens of a range those that may be part of a good pair: each with half of what the best partner gains.
  std::vector<std::size_t> good_singles(Range range, double partner, std::size_t t) const {
    constexpr std::size_t kGoodSingles = 256;
    std::vector<std::pair<double, std::size_t>> order;  // what counts against it
    for (std::size_t s = range.begin; s < range.end; ++s)
      order.emplace_back(-prospect(singles_[s], log_prior_[s], mean(s, t) + 0.5 * partner, t).log_promise, s);
    const std::size_t n = std::min(kGoodSingles, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end());
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < n; ++i) out.push_back(order[i].second);
    return out;
  }
  struct Means {
    double middle = 0.0, most = -std::numeric_limits<double>::infinity();
    double gain() const { return most - middle; }
  };
  Means means_of(Range range, std::size_t t) const {
    Means m;
    for (std::size_t s = range.begin; s < range.end; ++s) {
      m.middle += mean(s, t) / static_cast<double>(range.end - range.begin);
      m.most = std::max(m.most, mean(s, t));
    }
    return m;
  }

  // Those of last tokens with tokens of a group whose gains promise most to a target as a sum.
  void add_wanted(std::size_t t, std::size_t group, std::size_t n, std::vector<PlantedTokens>& out) const {
    const Means lasts = means_of(ranges_[0], t), others = means_of(ranges_[group + 1], t);
    const std::vector<std::size_t> good = good_singles(ranges_[group + 1], lasts.gain(), t);
    BestProspects best(n);
    for (const std::size_t l : good_singles(ranges_[0], others.gain(), t))
      for (const std::size_t o : good) {
        const PlantedTokens pair{
            .last = singles_[l].last, .other = singles_[o].other, .group = static_cast<std::uint32_t>(group)};
        best.add(prospect(pair, log_prior_[l] + log_prior_[o], mean(l, t) + mean(o, t) - others.middle, t));
      }
    for (const Prospect& p : best.take()) out.push_back(p.pair);
  }

  // All pairs where there is work for them, else what the targets want most.
  std::vector<PlantedTokens> wanted_pairs(double passes) const {
    double all = 0.0;
    const auto size = [&](std::size_t i) { return ranges_[i].end - ranges_[i].begin; };
    for (std::size_t g = 0; g < sites_.groups.size(); ++g) all += static_cast<double>(size(0) * size(g + 1));
    if (all <= passes) return all_pairs();
    const double per_target = passes / static_cast<double>(n_ * sites_.groups.size());
    const auto n = std::clamp(static_cast<std::size_t>(per_target), kFewestWanted, kMostWanted);
    std::vector<std::vector<PlantedTokens>> wanted(n_);
    pool_.for_each_block(n_, [&](std::size_t t, std::size_t) {
      for (std::size_t g = 0; g < sites_.groups.size(); ++g) add_wanted(t, g, n, wanted[t]);
    });
    std::vector<PlantedTokens> pairs;
    for (const auto& of_target : wanted) pairs.insert(pairs.end(), of_target.begin(), of_target.end());
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    return pairs;
  }

  std::vector<PlantedTokens> all_pairs() const {
    std::vector<PlantedTokens> pairs;
    for (std::uint32_t g = 0; g < sites_.groups.size(); ++g)
      for (std::size_t l = ranges_[0].begin; l < ranges_[0].end; ++l)
        for (std::size_t o = ranges_[g + 1].begin; o < ranges_[g + 1].end; ++o)
          pairs.push_back({.last = singles_[l].last, .other = singles_[o].other, .group = g});
    return pairs;
  }

  bool try_pairs(const std::vector<PlantedTokens>& pairs, std::size_t contexts) {
    const std::size_t step = tries_.together(contexts);
    std::vector<float> means;
    std::vector<double> priors;
    for (std::size_t first = 0; first < pairs.size(); first += step) {
      const auto some = std::span(pairs).subspan(first, std::min(step, pairs.size() - first));
      means.resize(some.size() * n_);
      tries_.run(some, contexts, [&](std::size_t i) {
        return LogitTries::Seen{std::span(means).subspan(i * n_, n_), {}};
      });
      priors.clear();
      for (const PlantedTokens& pair : some) priors.push_back(log_prior_of(pair, sites_));
      add_pairs(some, priors, means);
      if (!goes_on()) return false;
    }
    return true;
  }

  // means: [pairs, targets]. Some targets at a time, so that a pair's lie side by side.
  void add_pairs(std::span<const PlantedTokens> pairs, std::span<const double> priors,
                 std::span<const float> means) {
    constexpr std::size_t kTargets = 64;
    pool_.for_each_block((n_ + kTargets - 1) / kTargets, [&](std::size_t block, std::size_t) {
      const std::size_t end = std::min(n_, (block + 1) * kTargets);
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        std::vector<BestProspects>& best = pairs[i].group == 0 ? near_ : anywhere_;
        for (std::size_t t = block * kTargets; t < end; ++t)
          best[t].add(prospect(pairs[i], priors[i], static_cast<double>(means[i * n_ + t]), t));
      }
    });
  }

  // Adds what is worth planting of one kind, its chances summing to `part`; returns the log of what it makes of p.
  double add_kind(const std::vector<Prospect>& prospects, double part, std::vector<PlantChance>& out) const {
    double log_sum = -std::numeric_limits<double>::infinity(), log_p = log_sum;
    std::vector<double> worth;
    for (const Prospect& p : prospects) {
      worth.push_back(p.log_prior + 0.5 * log_chance_(p.z / kHeavierTails));
      log_sum = log_add(log_sum, worth.back());
      log_p = log_add(log_p, p.log_prior + log_chance_(p.z));
    }
    for (std::size_t i = 0; i < prospects.size(); ++i)
      out.push_back({prospects[i].pair, part * std::exp(worth[i] - log_sum)});
    return log_p;
  }

  std::vector<TargetScan> results() {
    std::vector<TargetScan> out(n_);
    pool_.for_each_block(n_, [&](std::size_t t, std::size_t) {
      BestProspects singles(kSinglesKept);
      for (std::size_t s = 0; s < singles_.size(); ++s)
        singles.add(prospect(singles_[s], log_prior_[s], mean(s, t), t));
      const double alone = add_kind(singles.take(), kSinglePart, out[t].pairs);
      const double near = add_kind(near_[t].take(), kNearPart, out[t].pairs);
      const double anywhere = add_kind(anywhere_[t].take(), kAnywherePart, out[t].pairs);
      out[t].log_guess = std::max({alone, near, anywhere});
      double sum = 0.0;
      for (const PlantChance& p : out[t].pairs) sum += p.chance;
      for (PlantChance& p : out[t].pairs) p.chance /= sum;
    });
    return out;
  }

  LogitTries& tries_;
  const PlantSites& sites_;
  std::size_t n_;
  ThreadPool& pool_;
  const Watch& watch_;
  double total_ = 0.0;
  LogNormalChance log_chance_;
  std::vector<PlantedTokens> singles_;
  std::vector<Range> ranges_;  // of singles: the last position's, then each group's
  std::vector<double> log_prior_;
  std::vector<float> mean_, variance_;  // [singles, targets]
  std::vector<double> usual_;           // [targets]: spread of margins over contexts
  std::vector<BestProspects> near_, anywhere_;
};

}  // namespace

double scan_all_bytes(const PlantSites& sites, std::size_t n_targets, double passes) {
  std::size_t n_singles = sites.prior.table(sites.last).size();
  for (const ScanGroup& group : sites.groups) n_singles += group.table->size();
  if (contexts_for(passes, n_singles) < kFewestContexts) return 0.0;
  const std::size_t prospects = BestProspects::most(kNearKept) + BestProspects::most(kAnywhereKept),
                    plants = kSinglesKept + kNearKept + kAnywhereKept,
                    each = 2 * n_singles * sizeof(float) + prospects * sizeof(Prospect) +
                           plants * sizeof(PlantChance);
  const double pairs = std::max(passes, static_cast<double>(kFewestWanted * n_targets * sites.groups.size()));
  return static_cast<double>(each) * static_cast<double>(n_targets) + 2.0 * sizeof(PlantedTokens) * pairs;
}

std::vector<TargetScan> scan_all(LogitTries& tries, const PlantSites& sites, std::size_t n_targets,
                                 double passes, ThreadPool& pool, const Watch& watch) {
  return AllScan(tries, sites, n_targets, pool, watch).run(passes);
}

}  // namespace deeptail
