#include "estimators/vocabulary/logit_tries.h"

#include <algorithm>
#include <limits>

#include "core/random.h"

namespace deeptail {

LogitTries::LogitTries(const Transformer& model, const PlantSites& sites, std::span<const TokenId> targets,
                       const FirstLayerTable* table, std::uint64_t seed, ThreadPool& pool)
    : model_(model),
      sites_(sites),
      targets_(targets),
      table_(table),
      seed_(seed),
      pool_(pool),
      contexts_(sample_inputs(TokenTables(sites.prior), seed, 0, kMostContexts, pool)),
      margins_(pool.size()) {}

std::size_t LogitTries::together(std::size_t contexts) const {
  constexpr std::size_t kLogits = std::size_t{1} << 23;
  return std::max<std::size_t>(1, kLogits / (model_.config().d_vocab * contexts));
}

// Where a pair goes, and into which contexts, depends on the pair and the number of passes before it alone.
void LogitTries::plant(std::span<const PlantedTokens> pairs, std::size_t contexts) {
  const std::size_t length = sites_.prior.length();
  inputs_.resize(pairs.size() * contexts, length);
  std::fill(inputs_.lengths.begin(), inputs_.lengths.end(), static_cast<std::uint32_t>(length));
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const PlantedTokens& pair = pairs[i / contexts];
    const std::uint64_t number = passes_ + i;
    const auto from = contexts_.row(contexts == kMostContexts ? i % contexts : number % kMostContexts);
    const auto to = inputs_.row(i);
    std::copy(from.begin(), from.end(), to.begin());
    if (pair.other != kNothing) {
      const auto& positions = sites_.groups[pair.group].positions;
      const double u = unit_double(uniform64({seed_, Stream::kMoves}, number, 0));
      to[positions[static_cast<std::size_t>(u * static_cast<double>(positions.size()))]] = pair.other;
    }
    if (pair.last != kNothing) to[sites_.last] = pair.last;
  }
}

// margins: [rows, targets].
void LogitTries::margins_of(std::size_t first_row, std::size_t rows, std::span<float> margins) const {
  const std::size_t v = model_.config().d_vocab;
  for (std::size_t r = 0; r < rows; ++r) {
    const float* logit = logits_.data() + (first_row + r) * v;
    const auto best = static_cast<std::size_t>(best_of(v, logit).index);
    float second = -std::numeric_limits<float>::infinity();
    for (std::size_t t = 0; t < v; ++t)
      if (t != best) second = std::max(second, logit[t]);
    for (std::size_t t = 0; t < targets_.size(); ++t) {
      const auto id = static_cast<std::size_t>(targets_[t]);
      margins[r * targets_.size() + t] = logit[id] - (id == best ? second : logit[best]);
    }
  }
}

void LogitTries::run(std::span<const PlantedTokens> pairs, std::size_t contexts,
                     const std::function<Seen(std::size_t)>& out) {
  const std::size_t n = pairs.size() * contexts, d = model_.config().d_model, v = model_.config().d_vocab;
  plant(pairs, contexts);
  if (resid_.size() < n * d) resid_.resize(n * d);
  if (logits_.size() < n * v) logits_.resize(n * v);
  final_residuals(model_, inputs_.batch(), pool_, {resid_.data(), d}, table_);
  logits(model_.head(), n, {resid_.data(), d}, pool_, {logits_.data(), v});
  pool_.for_each_block(pairs.size(), [&](std::size_t i, std::size_t worker) {
    std::vector<float>& margins = margins_[worker];
    margins.resize(contexts * targets_.size());
    margins_of(i * contexts, contexts, margins);
    const Seen seen = out(i);
    for (std::size_t t = 0; t < targets_.size(); ++t) {
      float sum = 0.0f, squares = 0.0f;
      for (std::size_t c = 0; c < contexts; ++c) sum += margins[c * targets_.size() + t];
      const float mean = sum / static_cast<float>(contexts);
      for (std::size_t c = 0; c < contexts; ++c) {
        const float off = margins[c * targets_.size() + t] - mean;
        squares += off * off;
      }
      seen.mean[t] = mean;
      if (!seen.variance.empty())
        seen.variance[t] = contexts > 1 ? squares / static_cast<float>(contexts - 1) : 0.0f;
    }
  });
  passes_ += n;
}

}  // namespace deeptail
