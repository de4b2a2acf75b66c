#include "estimators/tokensplit/particles.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/random.h"

namespace deeptail {

namespace {

constexpr std::size_t kUsualWinners = 64;

}  // namespace

TokenWork& TokenWork::operator+=(const TokenWork& other) {
  forwards += other.forwards;
  rescored += other.rescored;
  logits += other.logits;
  flops += other.flops;
  return *this;
}

double rescoring_flops(const ModelConfig& c, std::size_t length, std::size_t first_changed) {
  const double n = static_cast<double>(length), rows = n - static_cast<double>(first_changed);
  const double d = static_cast<double>(c.d_model), d_attn = static_cast<double>(c.d_attn());
  const double mlp = 4.0 * d * static_cast<double>(c.d_mlp);
  const double full_block =
      rows * (8.0 * d * d_attn + mlp + 2.0 * (n + static_cast<double>(first_changed) + 1.0) * d_attn);
  // The last block: keys and values of the changed rows (in a model of one layer that is one row, taken as
  // such), the query, attention, output and MLP of the last position.
  const double changed = c.n_layers == 1 ? 1.0 : rows;
  const double last_block = changed * 4.0 * d * d_attn + 4.0 * d * d_attn + 4.0 * n * d_attn + mlp;
  return static_cast<double>(c.n_layers - 1) * full_block + last_block;
}

double score_of(const Margin& margin) {
  if (margin.value == 0.0f && !margin.event()) return -std::numeric_limits<double>::denorm_min();
  return margin.value;
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
      rescorer_(problem.model, max_particles, problem.dist.length(), pool),
      proposed_tokens_(max_particles * problem.dist.length()),
      logits_(pool.size(), 0) {
  for (std::size_t i = 0; i < length(); ++i)
    flops_from_.push_back(rescoring_flops(problem.model.config(), length(), i));
  proposals_.reserve(max_particles);
  moves_.reserve(max_particles);
  accepted_.resize(max_particles);
}

void TokenParticles::sample(std::size_t n, std::uint64_t seed) {
  tokens_.resize(n * length());
  sample_range(problem_.dist, seed, 0, pool_, tokens_);
}

void TokenParticles::scores(std::span<double> out) {
  const std::size_t n = size(), d = problem_.model.config().d_model;
  if (resid_.size() < n * d) resid_.resize(n * d);
  margins_.resize(n);
  final_residuals(problem_.model, {tokens_, length()}, pool_, {resid_.data(), d}, problem_.table);
  deeptail::margins(problem_.model.head(), problem_.target, n, {resid_.data(), d}, pool_, margins_);
  for (std::size_t i = 0; i < n; ++i) out[i] = score_of(margins_[i]);
  work_.forwards += n;
  work_.flops += static_cast<double>(n) * forward_flops(problem_.model.config(), length());
}

void TokenParticles::resample(std::span<const std::uint32_t> parents) {
  std::vector<TokenId> next(parents.size() * length());
  for (std::size_t i = 0; i < parents.size(); ++i)
    std::copy_n(tokens_.begin() + static_cast<std::ptrdiff_t>(parents[i] * length()), length(),
                next.begin() + static_cast<std::ptrdiff_t>(i * length()));
  tokens_ = std::move(next);
}

void TokenParticles::begin_moves() {
  rescorer_.reset({tokens_, length()});
  work_.forwards += size();
  work_.flops += static_cast<double>(size()) * forward_flops(problem_.model.config(), length());
}

void TokenParticles::end_moves() {
  for (std::size_t i = 0; i < size(); ++i) {
    const auto now = rescorer_.tokens(i);
    std::copy(now.begin(), now.end(), tokens_.begin() + static_cast<std::ptrdiff_t>(i * length()));
  }
}

// Fills proposals_ and moves_ with the particles that would change; the others stay as they are.
void TokenParticles::propose_all(std::size_t level_number, std::size_t step, const MoveSettings& settings,
                                 std::uint64_t seed) {
  proposals_.clear();
  moves_.clear();
  for (std::size_t i = 0; i < size(); ++i) {
    const std::span<TokenId> proposal(proposed_tokens_.data() + i * length(), length());
    const auto now = rescorer_.tokens(i);
    std::copy(now.begin(), now.end(), proposal.begin());
    const Move move =
        propose_move(problem_.dist, free_, settings, {seed, step_index(level_number, step, i)}, proposal);
    if (!move.changed) continue;
    proposals_.push_back({i, proposal.data()});
    moves_.push_back(move);
  }
}

void TokenParticles::run_moves(double level, std::size_t level_number, std::size_t first, std::size_t count,
                               const MoveSettings& settings, std::uint64_t seed, MoveStats& stats,
                               MoveTally& tally) {
  const MarginTest test(problem_.model.head(), problem_.target, settings.winners, problem_.screen);
  std::vector<MarginTest::ScratchPtr> scratch;
  for (std::size_t w = 0; w < pool_.size(); ++w) scratch.push_back(test.make_scratch());
  tally.single.resize(length());
  const std::uint64_t accepted_before = stats.accepted;
  const auto decide = [&](std::size_t at, std::size_t n, ConstRows resid, std::span<std::uint8_t> accept,
                          std::size_t worker) {
    logits_[worker] += test.at_least(static_cast<float>(level), n, resid, accept, *scratch[worker]);
    std::copy_n(accept.begin(), n, accepted_.begin() + static_cast<std::ptrdiff_t>(at));
  };
  for (std::size_t step = first; step < first + count; ++step) {
    propose_all(level_number, step, settings, seed);
    rescorer_.propose(proposals_, decide);
    for (std::size_t i = 0; i < proposals_.size(); ++i) {
      const Move& move = moves_[i];
      Tally& t = move.kind == MoveKind::kSingle  ? tally.single[move.first]
                 : move.kind == MoveKind::kBlock ? tally.block
                                                 : tally.suffix;
      t.proposed += 1.0;
      t.accepted += accepted_[i];
      stats.accepted += accepted_[i];
      work_.flops += flops_from_[move.first];
    }
    stats.proposed += proposals_.size();
    work_.rescored += proposals_.size();
  }
  stats.moves += count;
  std::uint64_t logits = 0;
  for (std::uint64_t& n : logits_) logits += std::exchange(n, 0);
  work_.logits += logits;
  // Whoever is accepted was compared with the whole vocabulary, in 8 bits where there is a screen.
  double looked_at = static_cast<double>(logits);
  if (problem_.screen != nullptr)
    looked_at += 0.25 * static_cast<double>(stats.accepted - accepted_before) *
                 static_cast<double>(problem_.model.config().d_vocab);
  work_.flops += 2.0 * static_cast<double>(problem_.model.config().d_model) * looked_at;
}

}  // namespace deeptail
