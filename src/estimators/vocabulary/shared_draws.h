// Draws that all targets share: from the prior, from the flattened law, and from the law that plants what leads to any of
// them. Whatever an input says is that token's, with the weight prior / mixture: every token's mean weight is its
// probability, whatever is planted.
#pragma once

#include <functional>
#include <optional>

#include "deeptail/watch.h"
#include "estimators/vocabulary/planted_law.h"

namespace deeptail {

// What the model says after inputs: [n].
using SayAll = std::function<void(TokenBatch inputs, std::span<TokenId> said)>;

class SharedLaw {
 public:
  // Inputs come in blocks, of which each holds the same number of every law's: so the shares are exact.
  static constexpr std::size_t kBlock = 256;

  // plants: none: nothing is planted. first: number of the prior's first draw. The sites must outlive it.
  SharedLaw(const PlantSites& sites, std::span<const PlantChance> plants, std::uint64_t seed,
            std::uint64_t first);

  std::size_t length() const { return sites_.prior.length(); }
  const PlantSites& sites() const { return sites_; }
  std::size_t prior_draws() const { return n_prior_; }  // of a block: its first ones
  // tokens: [kBlock, length].
  void draw(std::uint64_t block, std::span<TokenId> tokens) const;
  // prior / mixture at an input: [length].
  double weight(std::span<const TokenId> input) const;

 private:
  const PlantSites& sites_;
  Distribution flat_;
  std::optional<PlantedLaw> planted_;
  std::size_t n_prior_, n_flat_;
  std::uint64_t seed_, first_;
  std::vector<std::vector<double>> flat_ratio_;  // [tables of flat_][d_vocab]
};

// An input that said the target.
struct SharedHit {
  double weight;
  std::uint32_t batch;               // of the draws
  TokenId last, before, third;       // its tokens at the last three free positions
  std::vector<TokenId> tokens = {};  // all of them, where they were asked for
};

struct TokenTally {
  std::uint64_t hits = 0;
  double sum = 0.0, squares = 0.0;    // of weights
  std::vector<SharedHit> first = {};  // the first of them

  double effective() const { return squares > 0.0 ? sum * sum / squares : 0.0; }  // hits of equal weights
};

struct SharedTallies {
  std::uint64_t draws = 0, prior_draws = 0;
  std::vector<TokenTally> of = {};         // [d_vocab]: of wanted ones
  std::vector<std::uint64_t> counts = {};  // [d_vocab]: in draws from the prior
};

struct SharedDrawsConfig {
  std::uint64_t blocks = 1;
  std::size_t kept = 0;     // hits of each target
  bool whole = false;       // with all their tokens
  std::size_t batches = 8;  // that blocks are dealt to in turn
};
// Memory of the hits that are kept of so many draws, at most. length: of inputs that are kept whole, else 0.
double kept_bytes(std::size_t n_targets, std::size_t length, std::size_t kept, double draws);

// wanted: [d_vocab]. Stopped, there is what was drawn until then. The watch is told draws.
SharedTallies draw_shared(const SharedLaw& law, const SayAll& say, const std::vector<std::uint8_t>& wanted,
                          const SharedDrawsConfig& config, ThreadPool& pool, const Watch& watch = {});

}  // namespace deeptail
