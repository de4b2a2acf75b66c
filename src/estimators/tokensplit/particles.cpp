#include "estimators/tokensplit/particles.h"

#include <algorithm>
#include <map>
#include <utility>

namespace deeptail {

namespace {

constexpr std::size_t kUsualWinners = 64;

}  // namespace

TokenWork& TokenWork::operator+=(const TokenWork& other) {
  forwards += other.forwards;
  rescored += other.rescored;
  logits += other.logits;
  flops += other.flops;
  device_seconds += other.device_seconds;
  return *this;
}

std::vector<TokenId> usual_winners(std::span<const Margin> margins) {
  std::map<TokenId, std::size_t> counts;
  for (const Margin& m : margins) ++counts[m.best_other];
  std::vector<std::pair<std::size_t, TokenId>> order;
  for (const auto& [id, count] : counts) order.emplace_back(count, id);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::vector<TokenId> winners;
  for (std::size_t i = 0; i < std::min(kUsualWinners, order.size()); ++i) winners.push_back(order[i].second);
  return winners;
}

TokenParticles::TokenParticles(const TokenProblem& problem, std::size_t max_particles, ThreadPool& pool)
    : problem_(problem),
      pool_(pool),
      free_(free_positions(problem.dist)),
      backend_(make_backend(problem_, max_particles, pool)) {
  for (std::size_t i = 0; i < length(); ++i)
    flops_from_.push_back(rescoring_flops(problem.model.config(), length(), i));
}

void TokenParticles::sample(std::size_t n, std::uint64_t seed) {
  tokens_.resize(n * length());
  sample_range(problem_.dist, seed, 0, pool_, tokens_);
}

bool TokenParticles::scores(std::span<double> out, const std::function<bool()>& go_on) {
  constexpr std::size_t kPiece = 8192;
  const std::size_t n = size(), piece = problem_.service != nullptr || !go_on ? n : kPiece;
  margins_.resize(n);
  for (std::size_t first = 0; first < n; first += piece) {
    if (first > 0 && !go_on()) return false;
    const std::size_t count = std::min(piece, n - first);
    work_.device_seconds += backend_->margins(std::span(tokens_).subspan(first * length(), count * length()),
                                              std::span(margins_).subspan(first, count));
    work_.forwards += count;
    work_.flops += static_cast<double>(count) * forward_flops(problem_.model.config(), length());
  }
  for (std::size_t i = 0; i < n; ++i) out[i] = score_of(margins_[i]);
  return true;
}

void TokenParticles::resample(std::span<const std::uint32_t> parents) {
  std::vector<TokenId> next(parents.size() * length());
  for (std::size_t i = 0; i < parents.size(); ++i)
    std::copy_n(tokens_.begin() + static_cast<std::ptrdiff_t>(parents[i] * length()), length(),
                next.begin() + static_cast<std::ptrdiff_t>(i * length()));
  tokens_ = std::move(next);
}

void TokenParticles::begin_moves() {
  backend_->begin_moves(tokens_);
  work_.forwards += size();
  work_.flops += static_cast<double>(size()) * forward_flops(problem_.model.config(), length());
}

void TokenParticles::run_moves(double level, std::size_t level_number, std::size_t first, std::size_t count,
                               const MoveSettings& settings, std::uint64_t seed, MoveStats& stats,
                               MoveTally& tally) {
  MoveOutcome outcome = backend_->run_moves({level, level_number, first, count, settings, seed}, tokens_);
  for (std::size_t i = 0; i < length(); ++i) {
    stats.proposed += outcome.from[i];
    work_.rescored += outcome.from[i];
    work_.flops += static_cast<double>(outcome.from[i]) * flops_from_[i];
  }
  stats.accepted += outcome.accepted;
  stats.moves += count;
  work_.logits += outcome.logits;
  work_.flops += 2.0 * static_cast<double>(problem_.model.config().d_model) * outcome.logits_paid;
  work_.device_seconds += outcome.device_seconds;
  tally = std::move(outcome.tally);
}

}  // namespace deeptail
