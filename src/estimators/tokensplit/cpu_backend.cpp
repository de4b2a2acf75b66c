// Sequences in a Rescorer, all moved together; a MarginTest decides.
#include <algorithm>
#include <utility>

#include "core/random.h"
#include "estimators/tokensplit/backend.h"
#include "estimators/tokensplit/service.h"

namespace deeptail {

namespace {

class CpuBackend final : public TokenBackend {
 public:
  CpuBackend(const TokenProblem& problem, std::size_t max_particles, ThreadPool& pool)
      : problem_(problem),
        pool_(pool),
        length_(problem.dist.length()),
        free_(free_positions(problem.dist)),
        rescorer_(problem.model, max_particles, length_, pool),
        proposed_tokens_(max_particles * length_),
        logits_(pool.size(), 0) {
    proposals_.reserve(max_particles);
    moves_.reserve(max_particles);
    accepted_.resize(max_particles);
  }

  double margins(std::span<const TokenId> tokens, std::span<Margin> out) override {
    const std::size_t n = out.size(), d = problem_.model.config().d_model;
    if (resid_.size() < n * d) resid_.resize(n * d);
    final_residuals(problem_.model, {tokens, length_}, pool_, {resid_.data(), d}, problem_.table);
    deeptail::margins(problem_.model.head(), problem_.target, n, {resid_.data(), d}, pool_, out);
    return 0.0;
  }

  void begin_moves(std::span<const TokenId> tokens) override { rescorer_.reset({tokens, length_}); }

  MoveOutcome run_moves(const MoveRound& round, std::span<TokenId> tokens) override;

 private:
  void propose_all(const MoveRound& round, std::size_t step, std::size_t n);

  const TokenProblem& problem_;
  ThreadPool& pool_;
  std::size_t length_;
  std::vector<std::size_t> free_;
  Rescorer rescorer_;
  AlignedVector<float> resid_;  // [n, d_model]
  // Of one step.
  std::vector<TokenId> proposed_tokens_;  // [max_particles, length]
  std::vector<Rescorer::Proposal> proposals_;
  std::vector<Move> moves_;
  std::vector<std::uint8_t> accepted_;
  std::vector<std::uint64_t> logits_;  // [worker]
};

// Fills proposals_ and moves_ with the particles that would change; the others stay as they are.
void CpuBackend::propose_all(const MoveRound& round, std::size_t step, std::size_t n) {
  proposals_.clear();
  moves_.clear();
  for (std::size_t i = 0; i < n; ++i) {
    const std::span<TokenId> proposal(proposed_tokens_.data() + i * length_, length_);
    const auto now = rescorer_.tokens(i);
    std::copy(now.begin(), now.end(), proposal.begin());
    const Move move = propose_move(problem_.dist, free_, round.settings,
                                   {round.seed, step_index(round.level_number, step, i)}, proposal);
    if (!move.changed) continue;
    proposals_.push_back({i, proposal.data()});
    moves_.push_back(move);
  }
}

// Allocates nothing per move.
MoveOutcome CpuBackend::run_moves(const MoveRound& round, std::span<TokenId> tokens) {
  const std::size_t n = tokens.size() / length_;
  const MarginTest test(problem_.model.head(), problem_.target, round.settings.winners, problem_.screen);
  std::vector<MarginTest::ScratchPtr> scratch;
  for (std::size_t w = 0; w < pool_.size(); ++w) scratch.push_back(test.make_scratch());
  MoveOutcome out(length_);
  const auto decide = [&](std::size_t at, std::size_t count, ConstRows resid, std::span<std::uint8_t> accept,
                          std::size_t worker) {
    logits_[worker] += test.at_least(round.level, count, resid, accept, *scratch[worker]);
    std::copy_n(accept.begin(), count, accepted_.begin() + static_cast<std::ptrdiff_t>(at));
  };
  for (std::size_t step = round.first; step < round.first + round.count; ++step) {
    propose_all(round, step, n);
    rescorer_.propose(proposals_, decide);
    for (std::size_t i = 0; i < proposals_.size(); ++i) {
      const Move& move = moves_[i];
      Tally& t = move.kind == MoveKind::kSingle  ? out.tally.single[move.first]
                 : move.kind == MoveKind::kBlock ? out.tally.block
                                                 : out.tally.suffix;
      t.proposed += 1.0;
      t.accepted += accepted_[i];
      out.accepted += accepted_[i];
      ++out.from[move.first];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto now = rescorer_.tokens(i);
    std::copy(now.begin(), now.end(), tokens.begin() + static_cast<std::ptrdiff_t>(i * length_));
  }
  for (std::uint64_t& count : logits_) out.logits += std::exchange(count, 0);
  out.logits_paid = static_cast<double>(out.logits);
  // Whoever is accepted was compared with the whole vocabulary, in 8 bits where there is a screen.
  if (problem_.screen != nullptr) out.logits_paid += screened_logits(out.accepted, problem_.model.config());
  return out;
}

}  // namespace

std::unique_ptr<TokenBackend> make_backend(const TokenProblem& problem, std::size_t max_particles,
                                           ThreadPool& pool) {
  if (problem.service != nullptr) return make_service_backend(problem);
  return std::make_unique<CpuBackend>(problem, max_particles, pool);
}

}  // namespace deeptail
