#include "estimators/tokensplit/served_particles.h"

#include <algorithm>

#include "events/next_token.h"

namespace deeptail {

ServedParticles::ServedParticles(const TokenProblem& problem, std::size_t base, ParticleService& service,
                                 MovePolicy& policy, ThreadPool& pool)
    : problem_(problem),
      config_(problem.model.config()),
      base_(base),
      target_(problem.event.next_token()->ids().front()),
      service_(service),
      policy_(policy),
      pool_(pool),
      length_(problem.length()) {}

void ServedParticles::count_forwards(std::size_t n) {
  work_.forwards += n;
  work_.flops += static_cast<double>(n) * forward_flops(config_, length_);
}

void ServedParticles::sample(std::size_t n, std::uint64_t seed) {
  tokens_ = sample_inputs(problem_.law, seed, 0, n, pool_).tokens;
}

void ServedParticles::scores(std::span<double> out) {
  std::vector<Margin> margins(size());
  work_.device_seconds += service_.margins(tokens_, length_, target_, margins);
  count_forwards(size());
  for (std::size_t i = 0; i < size(); ++i) out[i] = score_of(margins[i]);
}

void ServedParticles::resample(std::span<const std::uint32_t> parents) {
  std::vector<TokenId> next(parents.size() * length_);
  for (std::size_t i = 0; i < parents.size(); ++i)
    std::copy_n(tokens_.data() + parents[i] * length_, length_, next.data() + i * length_);
  tokens_ = std::move(next);
}

// Work is counted as it is on the CPU, so that a budget buys the same: the few logits that settle a refusal
// there are left out.
MoveTally ServedParticles::run_moves(const MoveRound& round, MoveStats& stats) {
  MoveOutcome outcome = service_.run_moves(round, tokens_, length_, target_, base_);
  std::uint64_t proposed = 0;
  for (std::size_t i = 0; i < length_; ++i) {
    proposed += outcome.from[i];
    work_.flops +=
        static_cast<double>(outcome.from[i]) * rescoring_flops(config_, length_, problem_.first_position(i));
  }
  work_.rescored += proposed;
  work_.logits += proposed * config_.d_vocab;
  work_.flops += 2.0 * static_cast<double>(config_.d_model) * screened_logits(outcome.accepted, config_);
  work_.device_seconds += outcome.device_seconds;
  stats.proposed += proposed;
  stats.accepted += outcome.accepted;
  stats.moves += round.count;
  return std::move(outcome.tally);
}

}  // namespace deeptail
