// Many populations on one device: every population is an ordinary blocking caller on a thread of its own, and
// what waits at the same time goes to the device together, whatever its target, level, seed or step.
//
// Results do not depend on who shares a batch, so they are the same for any number of callers.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "deeptail/model.h"
#include "estimators/tokensplit/mixture.h"
#include "estimators/tokensplit/moves.h"

namespace deeptail {

// What the moves of a round did. Proposals that changed nothing are not among them.
struct MoveOutcome {
  explicit MoveOutcome(std::size_t length) : tally{.single = std::vector<Tally>(length + 1)}, from(length) {}
  MoveTally tally;                  // single moves by their part: a position, or length: that of the plant
  std::vector<std::uint64_t> from;  // [length]: proposals by the first position that changed
  std::uint64_t accepted = 0;
  double device_seconds = 0.0;  // this population's share of the device's time
};

inline constexpr std::uint32_t kNoPlant = 0xffffffff;

// Part of a population in a batch. A cell is a token as the device knows it; a state is a particle that moves:
// the cells of its positions' own tokens, then the number of the plant that covers some of them, or kNoPlant.
struct ScorePiece {
  TokenId target;
  std::span<const std::uint32_t> cells;  // [n, length]
  std::span<Margin> margins;             // [n]: out
};
struct MovePiece {
  const MoveRound* round;
  TokenId target;
  std::size_t first_particle;       // number of the first one within the population
  std::size_t base;                 // the law that tokens are drawn from
  std::size_t first_step, n_steps;  // of the level's moves: part of the round
  std::span<std::uint32_t> states;  // [n, length + 1]: in and out
  MoveOutcome* outcome;             // added to: all but seconds
};

// Margins and moves in batches. Lanes may be used by different threads at the same time.
class ParticleDevice {
 public:
  static constexpr std::size_t kPrior = 0;  // the law that it was made with
  virtual ~ParticleDevice() = default;
  // Another law on the same cells, that moves may draw from; its number. Any thread may call these.
  virtual std::size_t add_base(const Component& component) = 0;
  virtual void remove_base(std::size_t base) = 0;  // nobody moves under it any more
  virtual std::size_t lanes() const = 0;
  virtual std::size_t max_particles() const = 0;  // of a batch
  virtual std::size_t max_pieces() const = 0;
  // tokens, cells: [n, length].
  virtual void encode(std::span<const TokenId> tokens, std::span<std::uint32_t> cells) const = 0;
  virtual void decode(std::span<const std::uint32_t> cells, std::span<TokenId> tokens) const = 0;
  // roughly: margins may be off a little, and need not say which other token they are against, where that is
  // quicker.
  virtual void score(std::size_t lane, std::span<const ScorePiece> pieces, bool roughly) = 0;
  // In descending order of n_steps.
  virtual void move(std::size_t lane, std::span<const MovePiece> pieces) = 0;
};

struct ServiceOptions {
  std::size_t steps = 16;       // moves between two chances for new requests to join
  std::size_t piece = 1 << 13;  // particles, at most, that stay together
};

class ParticleService {
 public:
  explicit ParticleService(ParticleDevice& device, const ServiceOptions& options = {});
  ~ParticleService();  // nobody may wait any more
  ParticleService(const ParticleService&) = delete;
  ParticleService& operator=(const ParticleService&) = delete;

  // Both return when it is done, and throw what the device threw. length: of an input. The first returns
  // seconds of the device.
  double margins(std::span<const TokenId> tokens, std::size_t length, TokenId target, std::span<Margin> out,
                 bool roughly = false);
  // states: [n, length + 1].
  MoveOutcome run_moves(const MoveRound& round, std::span<std::uint32_t> states, std::size_t length,
                        TokenId target, std::size_t base);
  ParticleDevice& device() { return device_; }
  // From now on, moves end where they are: the user wants to stop, and the runs will be told so.
  void hurry();

 private:
  using Clock = std::chrono::steady_clock;
  struct Request;
  struct Piece;
  struct Batch;

  void submit(Request& request);
  void work(std::size_t lane);
  bool worth_taking() const;
  Batch take();
  void run(Batch& batch, std::size_t lane);
  void finish(Batch& batch, Clock::time_point start, std::exception_ptr error);

  ParticleDevice& device_;
  ServiceOptions options_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Piece> scores_, moves_;       // that wait, in order of arrival
  std::size_t waiting_ = 0, running_ = 0;  // particles
  std::size_t busy_lanes_ = 0;
  Clock::time_point charged_until_;  // up to here, the device's time has been shared out
  std::exception_ptr failure_;       // the device is of no use any more
  bool hurry_ = false, stop_ = false;
  std::vector<std::thread> lanes_;
};

// A law that the service's device knows as long as this lives.
class ServedBase {
 public:
  // The component must outlive it.
  ServedBase(ParticleService& service, const Component& component)
      : device_(service.device()), component_(component), number_(device_.add_base(component)) {}
  ~ServedBase() { device_.remove_base(number_); }
  ServedBase(const ServedBase&) = delete;
  ServedBase& operator=(const ServedBase&) = delete;
  std::size_t number() const { return number_; }
  const Component& component() const { return component_; }

 private:
  ParticleDevice& device_;
  const Component& component_;
  std::size_t number_;
};

}  // namespace deeptail
