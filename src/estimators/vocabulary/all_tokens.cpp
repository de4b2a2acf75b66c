// First draws, a scan, draws to learn from, draws that count; then tokensplit for what these do not reach.
#include "deeptail/all_tokens.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/json.h"
#include "core/memory.h"
#include "core/stopwatch.h"
#include "estimators/vocabulary/backend.h"
#include "estimators/vocabulary/learn_plants.h"
#include "estimators/vocabulary/scan_all.h"
#include "estimators/vocabulary/token_rows.h"

namespace deeptail {

namespace {

// Of the budget; the rest, and what nobody has to be asked about alone with, goes to the draws that count.
constexpr double kFirstShare = 0.04, kScanAllShare = 0.06, kLearnShare = 0.14, kAloneShare = 0.08;
constexpr std::size_t kLearnRounds = 2;
constexpr double kCountedHits = 100.0;  // that the draws that count are expected to see, at least
constexpr double kPriorShare = 0.125;   // of the draws that count
constexpr double kPoorlySeen = 6.0;     // hits of equal weight in the last draws to learn from: too few
constexpr double kAloneBudget = 3e4;    // of a target that is asked about alone
constexpr std::size_t kKeptHits = 192, kKeptKeys = 2048, kBatches = 8;
constexpr std::uint64_t kFirstCounted = std::uint64_t{1} << 61;
constexpr std::uint64_t kFirstDrawsPart = 1, kScanAllPart = 2, kAlonePart = 3, kLearnParts = 16;
// Guesses of a scan: too high by a factor of 100 on average, and off by 30 either way.
constexpr double kGuessTooHigh = 100.0, kGuessOff = 30.0;

// One run, step by step. Everything that is chosen is so before the draws that count.
class AllRun {
 public:
  AllRun(const Transformer& model, const Distribution& dist, const AllTokensConfig& config, ThreadPool& pool,
         const Watch& watch, Device device)
      : model_(model),
        dist_(dist),
        config_(config),
        pool_(pool),
        watch_(watch),
        sites_(dist),
        table_(first_layer_table(model, dist, pool)),
        backend_(device == Device::kCuda ? cuda_backend(model, dist)
                                         : cpu_backend(model, dist, table_.get(), pool)),
        wanted_(model.config().d_vocab, 1) {}

  AllTokens run() {
    const Stopwatch stopwatch;
    look();
    if (goes_on_) scan();
    for (std::size_t r = 0; r < kLearnRounds && goes_on_ && !known_.empty(); ++r) learn(r);
    if (goes_on_ || final_.draws == 0) {
      const double for_alone = goes_on_ ? choose_alone() : 0.0;
      count(config_.budget - spent_ - for_alone);
    }
    fill();
    ask_alone();
    finish(stopwatch.seconds());
    return std::move(out_);
  }

 private:
  // What is known of a target before the draws that count.
  struct Known {
    std::vector<PlantChance> plants;
    double log_guess;        // of its probability
    double effective = 0.0;  // hits of equal weight in the last draws
  };

  // A step's watch: told what it did beyond what was spent before it.
  Watch watch() {
    return [this](const Progress& p) {
      const auto total = static_cast<std::uint64_t>(config_.budget);
      const auto done = static_cast<std::uint64_t>(spent_) + p.done;
      goes_on_ = goes_on_ && goes_on(watch_, progress_of(std::min(done, total), total));
      return goes_on_;
    };
  }
  static std::uint64_t blocks_for(double passes) {
    return std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(passes / static_cast<double>(SharedLaw::kBlock)));
  }
  SharedTallies draw(const SharedLaw& law, double passes, std::size_t kept, bool whole) {
    SharedTallies tallies = draw_shared(
        law, backend_.say, wanted_,
        {.blocks = blocks_for(passes), .kept = kept, .whole = whole, .batches = kBatches}, pool_, watch());
    spent_ += static_cast<double>(tallies.draws);
    return tallies;
  }

  // Which tokens can be counted?
  void look() {
    const SharedLaw law(sites_, {}, derived_seed(config_.seed, kFirstDrawsPart), 0);
    const SharedTallies first = draw(law, kFirstShare * config_.budget, 0, false);
    const double to_come =
        kPriorShare * (1.0 - kFirstShare - kScanAllShare - kLearnShare - kAloneShare) * config_.budget;
    for (std::size_t t = 0; t < wanted_.size(); ++t) {
      constexpr double kFewestSeen = 4.0;
      const auto hits = static_cast<double>(first.counts[t]);
      const double expected = hits / static_cast<double>(first.prior_draws) * to_come;
      wanted_[t] = hits < kFewestSeen || expected < kCountedHits;
      if (wanted_[t] != 0) targets_.push_back(static_cast<TokenId>(t));
    }
  }

  void scan() {
    LogitTries tries(model_, sites_, targets_, table_.get(), derived_seed(config_.seed, kScanAllPart), pool_);
    std::vector<TargetScan> scans =
        scan_all(tries, sites_, targets_.size(), kScanAllShare * config_.budget, pool_, watch());
    spent_ += static_cast<double>(tries.passes());
    for (TargetScan& s : scans) known_.push_back({std::move(s.pairs), s.log_guess - std::log(kGuessTooHigh)});
  }

  bool within(double log_p, double slack) const {
    return log_p >= std::log(config_.above / slack) && log_p <= std::log(config_.below * slack);
  }

  // Everybody's plants in one list: more for those that are badly known, little for those that seem to lie outside.
  std::vector<PlantChance> all_plants() const {
    constexpr double kOutside = 0.02, kNeverSeen = 0.1;
    std::vector<std::pair<double, std::span<const PlantChance>>> lists;
    for (const Known& k : known_) {
      const bool wanted = within(k.log_guess, k.effective >= 2.0 ? 3.0 : kGuessOff);
      const double share = !wanted ? kOutside : learnt_ && k.effective == 0.0 ? kNeverSeen : 1.0;
      lists.push_back({share / std::sqrt(std::max(1.0, k.effective)), k.plants});
    }
    return joined(lists);
  }

  void learn(std::size_t round) {
    const std::uint64_t seed = derived_seed(config_.seed, kLearnParts + round);
    const SharedLaw law(sites_, all_plants(), seed, 0);
    SharedTallies seen =
        draw(law, kLearnShare / static_cast<double>(kLearnRounds) * config_.budget, kKeptHits, true);
    if (!goes_on_) return keep(std::move(seen), seed, 0);  // there will be none that count more
    pool_.for_each_block(targets_.size(), [&](std::size_t i, std::size_t) {
      Known& k = known_[i];
      const TokenTally& tally = seen.of[static_cast<std::size_t>(targets_[i])];
      k.plants = learnt_plants(sites_, k.plants, tally.first);
      k.effective = tally.effective();
      if (tally.hits > 0) k.log_guess = std::log(tally.sum / static_cast<double>(seen.draws));
    });
    learnt_ = true;
  }

  // Those that the draws so far saw too little of, those that were seen and the likelier ones first.
  // Returns what they will take.
  double choose_alone() {
    std::vector<std::size_t> poor;
    for (std::size_t i = 0; i < known_.size(); ++i)
      if (known_[i].effective < kPoorlySeen && within(known_[i].log_guess, 3.0)) poor.push_back(i);
    const auto key = [&](std::size_t i) { return std::pair(known_[i].effective > 0.0, known_[i].log_guess); };
    std::stable_sort(poor.begin(), poor.end(), [&](std::size_t a, std::size_t b) { return key(a) > key(b); });
    const auto most = static_cast<std::size_t>(kAloneShare * config_.budget / kAloneBudget);
    poor.resize(std::min(poor.size(), most));
    for (const std::size_t i : poor) {
      alone_.push_back(targets_[i]);
      wanted_[static_cast<std::size_t>(targets_[i])] = 2;
    }
    return static_cast<double>(alone_.size()) * kAloneBudget;
  }

  void count(double passes) {
    const SharedLaw law(sites_, known_.empty() ? std::vector<PlantChance>() : all_plants(), config_.seed,
                        kFirstCounted);
    keep(draw(law, passes, kKeptKeys, false), config_.seed, kFirstCounted);
  }
  // These are the draws that rows are made of; their law was fixed before them.
  void keep(SharedTallies tallies, std::uint64_t seed, std::uint64_t first) {
    final_ = std::move(tallies);
    out_.seed = seed;
    out_.first = first;
    out_.samples = final_.prior_draws;
    out_.counts = final_.counts;
  }

  void add_row(Estimate e) {
    e.seed = config_.seed;
    if (within(e.log_p, 1.0))
      out_.rows.push_back(std::move(e));
    else
      out_.outside.push_back(std::move(e));
  }
  // What the draws that count say of a token that is not counted. warning: "" for none.
  void add_shared(TokenId token, const std::string& warning) {
    const TokenTally& tally = final_.of[static_cast<std::size_t>(token)];
    if (tally.hits == 0) return void(++out_.unseen);
    Estimate e = weighted_row(token, tally, final_.draws, kBatches);
    if (!warning.empty()) e.warnings.push_back(warning);
    add_row(std::move(e));
  }
  void fill() {
    for (std::size_t t = 0; t < wanted_.size(); ++t) {
      const auto token = static_cast<TokenId>(t);
      if (wanted_[t] == 0)
        add_row(counted_row(token, final_.counts[t], final_.prior_draws));
      else if (wanted_[t] == 1)
        add_shared(token, "");
    }
    out_.log_unseen_high = std::log(clopper_pearson(0, final_.prior_draws).high);
  }

  // Whoever tokensplit has no answer for keeps what the draws say: they were chosen before these.
  void ask_alone() {
    std::vector<std::string> why(alone_.size(), "stopped before tokensplit was done with it alone");
    std::vector<bool> answered(alone_.size());
    if (!alone_.empty() && goes_on_) ask_tokensplit(why, answered);
    for (std::size_t i = 0; i < alone_.size(); ++i)
      if (!answered[i]) add_shared(alone_[i], why[i] + ": this is what the shared draws say");
  }
  void ask_tokensplit(std::vector<std::string>& why, std::vector<bool>& answered) {
    std::vector<TokensplitTask> tasks;
    for (const TokenId target : alone_)
      tasks.push_back(
          {Target({target}, model_.head()),
           {.budget = kAloneBudget, .seed = derived_seed(config_.seed, kAlonePart), .max_triggers = 0}});
    double spent = 0.0;
    const auto take = [&](std::size_t i, Estimate e) {
      spent += e.cost.forward_equivalents;
      if (!goes_on_) return;  // it was cut short
      answered[i] = true;
      add_row(std::move(e));
    };
    const auto refuse = [&](std::size_t i, const std::string& reason) { why[i] = "tokensplit: " + reason; };
    backend_.ask(tasks, {.on_estimate = take, .on_refusal = refuse}, watch());
    spent_ += spent;
  }

  void finish(double seconds) {
    std::stable_sort(out_.rows.begin(), out_.rows.end(),
                     [](const Estimate& a, const Estimate& b) { return a.log_p > b.log_p; });
    std::sort(out_.outside.begin(), out_.outside.end(),
              [](const Estimate& a, const Estimate& b) { return a.target < b.target; });
    out_.stopped = !goes_on_;
    out_.cost.forward_equivalents = spent_;
    out_.cost.flops = spent_ * forward_flops(model_.config(), dist_.length());
    out_.cost.seconds = seconds;
  }

  const Transformer& model_;
  const Distribution& dist_;
  const AllTokensConfig config_;
  ThreadPool& pool_;
  const Watch& watch_;
  PlantSites sites_;
  std::unique_ptr<const FirstLayerTable> table_;
  AllBackend backend_;
  bool goes_on_ = true;
  double spent_ = 0.0;                // forward-pass equivalents
  std::vector<std::uint8_t> wanted_;  // [d_vocab]: 0: counted, 1: by shared draws, 2: alone
  std::vector<TokenId> targets_;      // that are not counted
  std::vector<Known> known_;          // [targets]
  bool learnt_ = false;
  std::vector<TokenId> alone_;
  SharedTallies final_;
  AllTokens out_;
};

// Nobody knows the number of targets before the first draws: at most all tokens are.
void check_fits_memory(const Distribution& dist, double budget) {
  const std::size_t v = dist.d_vocab;
  const double bytes = scan_all_bytes(PlantSites(dist), v, kScanAllShare * budget) +
                       kept_bytes(v, dist.length(), kKeptHits, kLearnShare * budget) +
                       kept_bytes(v, 0, kKeptKeys, budget);
  check_memory(fmt::format("estimating all {} tokens at once on {}", v, printable(dist.name)), bytes,
               "ask about single tokens");
}

}  // namespace

AllTokens estimate_all(const Transformer& model, const Distribution& dist, const AllTokensConfig& wanted,
                       ThreadPool& pool, const Watch& watch, Device device) {
  wanted.validate();
  if (free_positions(dist).size() < 2)
    throw InputError("{}: fewer than two positions vary; ask about single tokens", dist.name);
  AllTokensConfig config = wanted;
  if (config.budget == 0.0) config.budget = all_tokens_budget(model.config(), dist, device);
  check_fits_memory(dist, config.budget);
  return AllRun(model, dist, config, pool, watch, device).run();
}

}  // namespace deeptail
