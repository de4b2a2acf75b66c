// Who scores and moves the token sequences of one population: this machine's threads, or a device that many
// populations share (service.h).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "deeptail/estimators.h"
#include "estimators/tokensplit/moves.h"
#include "events/next_token.h"

namespace deeptail {

class ParticleService;

// What is estimated. All must outlive the particles; table, screen and service may be null.
struct TokenProblem {
  const Transformer& model;
  const Distribution& dist;
  const Target& target;
  const FirstLayerTable* table = nullptr;
  const Screen* screen = nullptr;
  ParticleService* service = nullptr;  // computes instead of this machine's threads; of one target token
};

// Moves [first, first + count) of a level.
struct MoveRound {
  double level;
  std::size_t level_number, first, count;
  const MoveSettings& settings;
  std::uint64_t seed;
};

// Proposals and acceptances at one position (single moves) or of one kind.
struct Tally {
  double proposed = 0.0, accepted = 0.0;
  double acceptance() const { return (accepted + 1.0) / (proposed + 2.0); }
};
struct MoveTally {
  std::vector<Tally> single = {};  // [length]
  Tally block = {}, suffix = {};
};

// What the moves of a round did. Proposals that changed nothing are not among them.
struct MoveOutcome {
  explicit MoveOutcome(std::size_t length) : tally{.single = std::vector<Tally>(length)}, from(length) {}
  MoveTally tally;
  std::vector<std::uint64_t> from;  // [length]: proposals by the first position that changed
  std::uint64_t accepted = 0;
  std::uint64_t logits = 0;     // computed in full
  double logits_paid = 0.0;     // that count as work of the algorithm
  double device_seconds = 0.0;  // this population's share of the device's time
};

class TokenBackend {
 public:
  virtual ~TokenBackend() = default;
  // tokens: [n, length]; out: [n]. Returns this population's share of a device's seconds.
  virtual double margins(std::span<const TokenId> tokens, std::span<Margin> out) = 0;
  // Before the first round of a level. tokens: [n, length].
  virtual void begin_moves(std::span<const TokenId> tokens) = 0;
  // Moves all particles; tokens: [n, length], where begin_moves or the last round left them, and where they
  // are now.
  virtual MoveOutcome run_moves(const MoveRound& round, std::span<TokenId> tokens) = 0;
};

// The problem's service where it has one, else the pool's threads, with room for max_particles that move.
std::unique_ptr<TokenBackend> make_backend(const TokenProblem& problem, std::size_t max_particles,
                                           ThreadPool& pool);

}  // namespace deeptail
