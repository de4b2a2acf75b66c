#include "estimators/tokensplit/scan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/statistics.h"

namespace deeptail {

namespace {

constexpr std::size_t kContexts = 16, kFewContexts = 4;
constexpr std::size_t kMostPairs = 4096;     // that are kept
constexpr std::size_t kFewestLast = 4;       // last tokens that are tried with every second-last one
constexpr std::size_t kChunk = 4096;         // candidates that are scored together
constexpr double kMoreSpread = 1.3;          // contexts are few, and scores have heavier tails than normal
constexpr TokenId kAsInContext = -1;

struct Candidate {
  TokenId second, last;  // second: kAsInContext leaves it
  double log_prior;
  double mean = 0.0, variance = 0.0;  // of its scores over the contexts
  double log_worth = 0.0;
};

// Chances in proportion to prior * sqrt(Pr[event given the pair]) have the least variance where what follows
// the pair is drawn from the prior. The probability is that of a normal score, its variance drawn towards
// the median one.
void judge(std::vector<Candidate>& candidates, std::size_t contexts) {
  std::vector<double> variances;
  for (const Candidate& c : candidates) variances.push_back(c.variance);
  std::nth_element(variances.begin(), variances.begin() + static_cast<std::ptrdiff_t>(variances.size() / 2),
                   variances.end());
  const double median = variances[variances.size() / 2], n = static_cast<double>(contexts);
  for (Candidate& c : candidates) {
    const double variance = ((n - 1.0) * c.variance + 4.0 * median) / (n + 3.0);
    const double z = variance > 0.0 ? c.mean / (kMoreSpread * std::sqrt(variance)) : (c.mean < 0.0 ? -40.0 : 40.0);
    c.log_worth = c.log_prior + 0.5 * log_normal_tail(-z);
  }
}

void keep_best(std::vector<Candidate>& candidates, std::size_t n) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.log_worth > b.log_worth; });
  if (candidates.size() > n) candidates.resize(n);
}

// The scan of one target.
template <class Place>
class PairScan {
 public:
  PairScan(const Place& place, std::uint64_t seed, ThreadPool& pool)
      : place_(place), pool_(pool), dist_(*place.problem.law.tables()), free_(free_positions(dist_)) {
    contexts_ = sample_inputs(place.problem.law, seed, 0, kContexts, pool);
    last_ = free_.back();
    second_ = free_[free_.size() - 2];
  }

  ScanResult run(double flops) {
    const auto& seconds = dist_.table(second_);
    const auto& lasts = dist_.table(last_);
    const double tries = flops / cost_of_try();
    const auto fits = [&](double n) { return n <= tries; };
    const double pairs = static_cast<double>(seconds.size()) * static_cast<double>(lasts.size());
    if (fits(pairs * kFewContexts)) {
      const auto contexts =
          std::min(kContexts, static_cast<std::size_t>(tries / pairs));
      return finish(all_pairs(every(lasts, kAsInContext), seconds), contexts);
    }
    if (!fits(static_cast<double>(lasts.size() * kFewContexts))) return {};
    // The last tokens alone, then the best of them with every second-last one.
    std::vector<Candidate> alone = every(lasts, kAsInContext);
    const auto contexts = std::min(
        kContexts, static_cast<std::size_t>(0.25 * tries / static_cast<double>(lasts.size())) + 1);
    try_all(alone, std::max(kFewContexts, contexts));
    const double left = tries - static_cast<double>(alone.size() * contexts);
    const auto best = static_cast<std::size_t>(
        std::max(0.0, left) / static_cast<double>(seconds.size() * kFewContexts));
    if (best < kFewestLast) return {.work = work_};
    keep_best(alone, best);
    return finish(all_pairs(alone, seconds), kFewContexts);
  }

 private:
  double cost_of_try() const {
    const ModelConfig& config = place_.problem.model.config();
    return place_.problem.event.next_token() != nullptr
               ? rescoring_flops(config, dist_.length(), second_) +
                     2.0 * static_cast<double>(config.d_model * config.d_vocab)
               : forward_flops(config, dist_.length());
  }

  std::vector<Candidate> every(const TokenTable& lasts, TokenId second) const {
    std::vector<Candidate> out;
    for (std::size_t i = 0; i < lasts.size(); ++i)
      out.push_back({.second = second, .last = lasts.ids()[i], .log_prior = std::log(lasts.probability(i))});
    return out;
  }

  static std::vector<Candidate> all_pairs(const std::vector<Candidate>& lasts, const TokenTable& seconds) {
    std::vector<Candidate> out;
    for (const Candidate& last : lasts)
      for (std::size_t i = 0; i < seconds.size(); ++i)
        out.push_back({.second = seconds.ids()[i],
                       .last = last.last,
                       .log_prior = last.log_prior + std::log(seconds.probability(i))});
    return out;
  }

  void try_all(std::vector<Candidate>& candidates, std::size_t contexts) {
    auto probe = place_.probe(contexts_, contexts, pool_);
    for (std::size_t first = 0; first < candidates.size(); first += kChunk)
      try_some(std::span(candidates).subspan(first, std::min(kChunk, candidates.size() - first)), contexts,
               probe);
    judge(candidates, contexts);
  }

  template <class Probe>
  void try_some(std::span<Candidate> candidates, std::size_t contexts, Probe& probe) {
    Inputs changed;
    changed.resize(candidates.size() * contexts, dist_.length());
    std::fill(changed.lengths.begin(), changed.lengths.end(), static_cast<std::uint32_t>(dist_.length()));
    for (std::size_t i = 0; i < changed.size(); ++i) {
      const auto from = contexts_.row(i % contexts);
      const auto to = changed.row(i);
      std::copy(from.begin(), from.end(), to.begin());
      const Candidate& c = candidates[i / contexts];
      to[last_] = c.last;
      if (c.second != kAsInContext) to[second_] = c.second;
    }
    std::vector<double> scores(changed.size());
    work_ += probe.scores(changed, candidates.front().second == kAsInContext ? last_ : second_, scores);
    for (std::size_t i = 0; i < candidates.size(); ++i)
      take(std::span(scores).subspan(i * contexts, contexts), candidates[i]);
  }

  static void take(std::span<const double> scores, Candidate& c) {
    const auto n = static_cast<double>(scores.size());
    c.mean = std::accumulate(scores.begin(), scores.end(), 0.0) / n;
    double squares = 0.0;
    for (const double s : scores) squares += (s - c.mean) * (s - c.mean);
    c.variance = squares / std::max(1.0, n - 1.0);
  }

  ScanResult finish(std::vector<Candidate> candidates, std::size_t contexts) {
    try_all(candidates, contexts);
    keep_best(candidates, kMostPairs);
    constexpr double kSmallest = 1e-12;  // of the best one; leaves whole units of 2^-64 to all
    const double top = candidates.front().log_worth;
    std::vector<TokenId> tokens, numbers;
    std::vector<double> chances;
    double sum = 0.0;
    for (const Candidate& c : candidates) {
      const double chance = std::exp(c.log_worth - top);
      if (chance < kSmallest) break;
      tokens.insert(tokens.end(), {c.second, c.last});
      numbers.push_back(static_cast<TokenId>(numbers.size()));
      chances.push_back(chance);
      sum += chance;
    }
    for (double& chance : chances) chance /= sum;
    return {.pairs = TupleTable{.positions = {second_, last_},
                                .tokens = std::move(tokens),
                                .chances = TokenTable("pairs", std::move(numbers), std::move(chances), "pairs")},
            .work = work_};
  }

  const Place& place_;
  ThreadPool& pool_;
  const Distribution& dist_;
  std::vector<std::size_t> free_;
  std::size_t second_ = 0, last_ = 0;
  Inputs contexts_;
  Work work_;
};

}  // namespace

template <class Place>
ScanResult scan_pairs(const Place& place, double flops, std::uint64_t seed, ThreadPool& pool) {
  const Distribution* tables = place.problem.law.tables();
  if (tables == nullptr || place.problem.event.n_parts() > 0 || free_positions(*tables).size() < 2) return {};
  return PairScan<Place>(place, seed, pool).run(flops);
}
template ScanResult scan_pairs(const CpuPlace&, double, std::uint64_t, ThreadPool&);
template ScanResult scan_pairs(const ServedPlace&, double, std::uint64_t, ThreadPool&);

}  // namespace deeptail
