#include "estimators/vocabulary/shared_draws.h"

#include <algorithm>

#include "core/random.h"
#include "core/stopwatch.h"
#include "deeptail/splitting.h"
#include "estimators/tokensplit/strata.h"

namespace deeptail {

namespace {

constexpr std::uint64_t kFlatPart = 1, kPlantedPart = 2, kWhichPart = 3;
constexpr std::size_t kMostBlocks = 64;  // at a time
constexpr double kSecondsAtOnce = 0.5;

}  // namespace

SharedLaw::SharedLaw(const PlantSites& sites, std::span<const PlantChance> plants, std::uint64_t seed,
                     std::uint64_t first)
    : sites_(sites),
      flat_(flattened(sites.prior)),
      n_prior_(plants.empty() ? kBlock / 2 : kBlock / 8),
      n_flat_(plants.empty() ? kBlock / 2 : kBlock / 8),
      seed_(seed),
      first_(first) {
  if (!plants.empty()) planted_.emplace(sites, plants);
  flat_ratio_.resize(flat_.tables.size());
  for (std::size_t position = 0; position < length(); ++position) {
    std::vector<double>& ratio = flat_ratio_[flat_.positions[position]];
    if (!ratio.empty()) continue;
    ratio.assign(flat_.d_vocab, 0.0);
    const TokenTable& table = flat_.table(position);
    for (std::size_t i = 0; i < table.size(); ++i)
      ratio[static_cast<std::size_t>(table.ids()[i])] =
          table.probability(i) * sites_.inverse_at(position, table.ids()[i]);
  }
}

void SharedLaw::draw(std::uint64_t block, std::span<TokenId> tokens) const {
  const auto row = [&](std::size_t i) { return tokens.subspan(i * length(), length()); };
  for (std::size_t i = 0; i < n_prior_; ++i)
    sample(sites_.prior, seed_, first_ + block * n_prior_ + i, row(i));
  for (std::size_t i = 0; i < n_flat_; ++i)
    sample(flat_, derived_seed(seed_, kFlatPart), block * n_flat_ + i, row(n_prior_ + i));
  const std::size_t begin = n_prior_ + n_flat_;
  for (std::size_t i = begin; i < kBlock; ++i) {
    const std::uint64_t index = block * (kBlock - begin) + (i - begin);
    sample(sites_.prior, derived_seed(seed_, kPlantedPart), index, row(i));
    const auto [which, where] = uniform64_pair({derived_seed(seed_, kWhichPart), Stream::kMoves}, index, 0);
    planted_->plant(which, where, row(i));
  }
}

double SharedLaw::weight(std::span<const TokenId> input) const {
  double flat = 1.0;
  for (std::size_t position = 0; position < input.size(); ++position)
    flat *= flat_ratio_[flat_.positions[position]][static_cast<std::size_t>(input[position])];
  const auto n = [](std::size_t draws) { return static_cast<double>(draws); };
  double sum = n(n_prior_) + n(n_flat_) * flat;
  if (planted_) sum += n(kBlock - n_prior_ - n_flat_) * planted_->ratio(input);
  return n(kBlock) / sum;
}

namespace {

// Blocks of draws, made and judged side by side, and told in order.
class SharedRun {
 public:
  SharedRun(const SharedLaw& law, const SayAll& say, const std::vector<std::uint8_t>& wanted,
            const SharedDrawsConfig& config, ThreadPool& pool)
      : law_(law), say_(say), wanted_(wanted), config_(config), pool_(pool) {
    out_.of.resize(wanted.size());
    out_.counts.resize(wanted.size());
  }

  void run(std::uint64_t first, std::size_t blocks) {
    const std::size_t n = blocks * SharedLaw::kBlock, length = law_.length();
    tokens_.resize(n * length);
    said_.resize(n);
    weights_.resize(n);
    pool_.for_each_block(blocks, [&](std::size_t b, std::size_t) {
      const std::size_t size = SharedLaw::kBlock * length;
      law_.draw(first + b, std::span(tokens_).subspan(b * size, size));
    });
    say_({tokens_, length}, said_);
    pool_.for_each_block(blocks, [&](std::size_t b, std::size_t) {
      for (std::size_t i = b * SharedLaw::kBlock; i < (b + 1) * SharedLaw::kBlock; ++i)
        weights_[i] = is_wanted(i) ? law_.weight(input(i)) : 0.0;
    });
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t block = first + i / SharedLaw::kBlock;
      if (i % SharedLaw::kBlock < law_.prior_draws()) ++out_.counts[said(i)];
      if (is_wanted(i)) add(i, static_cast<std::uint32_t>(block % config_.batches));
    }
    out_.draws += n;
    out_.prior_draws += blocks * law_.prior_draws();
  }
  SharedTallies take() { return std::move(out_); }

 private:
  std::size_t said(std::size_t i) const { return static_cast<std::size_t>(said_[i]); }
  bool is_wanted(std::size_t i) const { return wanted_[said(i)] != 0; }
  std::span<const TokenId> input(std::size_t i) const {
    return std::span(tokens_).subspan(i * law_.length(), law_.length());
  }
  void add(std::size_t i, std::uint32_t batch) {
    TokenTally& tally = out_.of[said(i)];
    const double w = weights_[i];
    ++tally.hits;
    tally.sum += w;
    tally.squares += w * w;
    if (tally.first.size() >= config_.kept) return;
    const auto tokens = input(i);
    const PlantSites& sites = law_.sites();
    tally.first.push_back({w, batch, tokens[sites.last], tokens[sites.before()], tokens[sites.third]});
    if (config_.whole) tally.first.back().tokens.assign(tokens.begin(), tokens.end());
  }

  const SharedLaw& law_;
  const SayAll& say_;
  const std::vector<std::uint8_t>& wanted_;
  const SharedDrawsConfig& config_;
  ThreadPool& pool_;
  std::vector<TokenId> tokens_, said_;
  std::vector<double> weights_;
  SharedTallies out_;
};

}  // namespace

double kept_bytes(std::size_t n_targets, std::size_t length, std::size_t kept, double draws) {
  const double hits = std::min(draws, static_cast<double>(n_targets) * static_cast<double>(kept));
  return hits * static_cast<double>(sizeof(SharedHit) + length * sizeof(TokenId));
}

SharedTallies draw_shared(const SharedLaw& law, const SayAll& say, const std::vector<std::uint8_t>& wanted,
                          const SharedDrawsConfig& config, ThreadPool& pool, const Watch& watch) {
  SharedRun run(law, say, wanted, config, pool);
  std::size_t at_once = 1;
  for (std::uint64_t done = 0; done < config.blocks;) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(at_once, config.blocks - done));
    const Stopwatch stopwatch;
    run.run(done, n);
    done += n;
    if (!goes_on(watch, progress_of(done * SharedLaw::kBlock, config.blocks * SharedLaw::kBlock))) break;
    if (stopwatch.seconds() < kSecondsAtOnce) at_once = std::min(2 * at_once, kMostBlocks);
  }
  return run.take();
}

}  // namespace deeptail
