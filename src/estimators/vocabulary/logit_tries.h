// Contexts with tokens planted in them, and what each token's margin is there.
#pragma once

#include <functional>

#include "deeptail/activations.h"
#include "estimators/vocabulary/planted_law.h"

namespace deeptail {

class LogitTries {
 public:
  // The margins of one pair, means and variances (0 with one context) over its contexts: [targets] each.
  struct Seen {
    std::span<float> mean, variance;
  };
  // All must outlive it; table may be null. targets: whose margins are looked at.
  LogitTries(const Transformer& model, const PlantSites& sites, std::span<const TokenId> targets,
             const FirstLayerTable* table, std::uint64_t seed, ThreadPool& pool);

  static constexpr std::size_t kMostContexts = 16;
  // Pairs at a time: at most together(). contexts: of each. out(i): where pair i's go. Called by
  // worker threads.
  void run(std::span<const PlantedTokens> pairs, std::size_t contexts,
           const std::function<Seen(std::size_t i)>& out);
  std::size_t together(std::size_t contexts) const;
  std::uint64_t passes() const { return passes_; }

 private:
  void plant(std::span<const PlantedTokens> pairs, std::size_t contexts);
  void margins_of(std::size_t first_row, std::size_t rows, std::span<float> margins) const;

  const Transformer& model_;
  const PlantSites& sites_;
  std::span<const TokenId> targets_;
  const FirstLayerTable* table_;
  std::uint64_t seed_;
  ThreadPool& pool_;
  Inputs contexts_, inputs_;
  AlignedVector<float> resid_, logits_;
  std::vector<std::vector<float>> margins_;  // [worker][contexts, targets]
  std::uint64_t passes_ = 0;
};

}  // namespace deeptail
