#include "estimators/tokensplit/served_particles.h"

#include <algorithm>

#include "events/next_token.h"

namespace deeptail {

ServedParticles::ServedParticles(const TokenProblem& problem, const ServedBase* base,
                                 ParticleService& service, MovePolicy& policy, ThreadPool& pool)
    : problem_(problem),
      config_(problem.model.config()),
      base_(base),
      plants_(base != nullptr && base->component().plants ? &*base->component().plants : nullptr),
      target_(problem.event.next_token()->ids().front()),
      service_(service),
      policy_(policy),
      pool_(pool),
      length_(problem.length()) {}

void ServedParticles::count_forwards(std::size_t n) {
  work_.forwards += n;
  work_.flops += static_cast<double>(n) * forward_flops(config_, length_);
}

// As the CPU pays for it.
void ServedParticles::hold(const ScoreHints&) {
  if (!is_held_) count_forwards(distinct_rows(inputs()).first.size());
  is_held_ = true;
}

// From the numbers that a population on the CPU begins with.
void ServedParticles::sample(std::size_t n, std::uint64_t seed) {
  constexpr std::size_t kPiece = 4096;
  const std::size_t n_parts = problem_.law.facts().n_parts;
  is_held_ = false;
  states_.resize(n * (length_ + 1));
  tokens_.resize(n * length_);
  std::vector<std::uint64_t> parts;
  for (std::size_t first = 0; first < n; first += kPiece) {
    const std::size_t some = std::min(kPiece, n - first);
    parts.resize(some * n_parts);
    sample_parts(problem_.law, seed, first, pool_, parts);
    for (std::size_t i = 0; i < some; ++i) begin(first + i, std::span(parts).subspan(i * n_parts, n_parts));
  }
  show();
}

// numbers: [parts of the law].
void ServedParticles::begin(std::size_t i, std::span<const std::uint64_t> numbers) {
  const Distribution& tables = base_ == nullptr ? *problem_.law.tables() : base_->component().tables;
  const auto own = std::span(tokens_).subspan(i * length_, length_);
  for (std::size_t p = 0; p < length_; ++p) own[p] = tables.table(p).draw(numbers[p]);
  service_.device().encode(own, state(i).first(length_));
  state(i)[length_] =
      plants_ == nullptr ? kNoPlant : static_cast<std::uint32_t>(plants_->chances.draw(numbers[length_]));
}

// states_ -> tokens_.
void ServedParticles::show() {
  for (std::size_t i = 0; i < size(); ++i) {
    const auto tokens = std::span(tokens_).subspan(i * length_, length_);
    service_.device().decode(state(i).first(length_), tokens);
    if (plants_ == nullptr) continue;
    plants_->plants[state(i)[length_]].write(tokens);
  }
}

void ServedParticles::scores(std::span<double> out) {
  std::vector<Margin> margins(size());
  work_.device_seconds += service_.margins(tokens_, length_, target_, margins);
  if (is_held_) {
    work_.rescored += size();
    work_.logits += size() * config_.d_vocab;
    work_.flops += static_cast<double>(size()) * problem_.event.held_score_flops(config_, problem_.law);
  } else {
    count_forwards(size());
  }
  for (std::size_t i = 0; i < size(); ++i) out[i] = score_of(margins[i]);
}

void ServedParticles::resample(std::span<const std::uint32_t> parents) {
  const std::size_t width = length_ + 1;
  std::vector<std::uint32_t> next(parents.size() * width);
  for (std::size_t i = 0; i < parents.size(); ++i)
    std::copy_n(states_.data() + parents[i] * width, width, next.data() + i * width);
  states_ = std::move(next);
  is_held_ = is_held_ && std::is_sorted(parents.begin(), parents.end());
  tokens_.resize(parents.size() * length_);
  show();
}

// Work is counted as it is on the CPU, so that a budget buys the same: the few logits that settle a refusal
// there are left out.
MoveTally ServedParticles::run_moves(const MoveRound& round, MoveStats& stats) {
  MoveOutcome outcome = service_.run_moves(round, states_, length_, target_,
                                           base_ == nullptr ? ParticleDevice::kPrior : base_->number());
  show();
  std::uint64_t proposed = 0;
  for (std::size_t i = 0; i < length_; ++i) {
    proposed += outcome.from[i];
    work_.flops += static_cast<double>(outcome.from[i]) * rescoring_flops(config_, length_, i);
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
