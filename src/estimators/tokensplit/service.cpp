#include "estimators/tokensplit/service.h"

#include <algorithm>

namespace deeptail {

// What one caller waits for.
struct ParticleService::Request {
  const MoveRound* round = nullptr;  // null: margins are wanted
  TokenId target = 0;
  std::size_t base = ParticleDevice::kPrior;
  bool roughly = false;
  std::size_t length = 0, width = 0;
  std::span<std::uint32_t> words = {};  // [n, width]: cells or states
  std::span<Margin> margins = {};
  MoveOutcome outcome{0};
  std::size_t pieces_left = 0;
  std::exception_ptr error = {};
  std::condition_variable done = {};
};

// Some of its particles; all of them have made the same number of the round's moves.
struct ParticleService::Piece {
  Request* request;
  std::size_t first, n;  // particles
  std::size_t steps = 0;
  std::size_t steps_left() const { return request->round == nullptr ? 0 : request->round->count - steps; }
  std::span<std::uint32_t> words() const {
    return request->words.subspan(first * request->width, n * request->width);
  }
};

struct ParticleService::Batch {
  bool scores = false, roughly = false;
  std::vector<Piece> pieces = {};
  std::vector<std::size_t> steps = {};     // [pieces]: of moves
  std::vector<MoveOutcome> outcomes = {};  // [pieces]: of moves
  std::size_t particles = 0;
};

ParticleService::ParticleService(ParticleDevice& device, const ServiceOptions& options)
    : device_(device), options_(options) {
  options_.piece = std::clamp<std::size_t>(options_.piece, 1, device.max_particles());
  for (std::size_t lane = 0; lane < device.lanes(); ++lane) lanes_.emplace_back([this, lane] { work(lane); });
}

ParticleService::~ParticleService() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& lane : lanes_) lane.join();
}

double ParticleService::margins(std::span<const TokenId> tokens, std::size_t length, TokenId target,
                                std::span<Margin> out, bool roughly) {
  std::vector<std::uint32_t> cells(tokens.size());
  device_.encode(tokens, cells);
  Request request{.target = target,
                  .roughly = roughly,
                  .length = length,
                  .width = length,
                  .words = cells,
                  .margins = out};
  submit(request);
  return request.outcome.device_seconds;
}

MoveOutcome ParticleService::run_moves(const MoveRound& round, std::span<std::uint32_t> states,
                                       std::size_t length, TokenId target, std::size_t base) {
  Request request{.round = &round,
                  .target = target,
                  .base = base,
                  .length = length,
                  .width = length + 1,
                  .words = states,
                  .outcome = MoveOutcome(length)};
  if (round.count > 0) submit(request);
  return std::move(request.outcome);
}

void ParticleService::hurry() {
  const std::lock_guard lock(mutex_);
  hurry_ = true;
}

// Returns when all of it is done.
void ParticleService::submit(Request& request) {
  const std::size_t n = request.words.size() / request.width;
  std::unique_lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  if (hurry_ && request.round != nullptr) return;
  std::deque<Piece>& queue = request.round == nullptr ? scores_ : moves_;
  for (std::size_t first = 0; first < n; first += options_.piece, ++request.pieces_left)
    queue.push_back({&request, first, std::min(options_.piece, n - first)});
  waiting_ += n;
  wake_.notify_one();
  request.done.wait(lock, [&] { return request.pieces_left == 0; });
  if (request.error) std::rethrow_exception(request.error);
}

// While the device is busy with another lane's batch, a small one may as well grow.
bool ParticleService::worth_taking() const {
  if (waiting_ == 0) return false;
  return busy_lanes_ == 0 || waiting_ >= (waiting_ + running_) / (2 * lanes_.size());
}

// Scores first: their callers have moves to ask for. A lane takes its share of what there is, so that the
// others have something to prepare meanwhile.
ParticleService::Batch ParticleService::take() {
  const std::size_t share = std::max(options_.piece, (waiting_ + running_) / device_.lanes());
  const std::size_t most = std::min(device_.max_particles(), share);
  Batch batch{.scores = !scores_.empty()};
  std::deque<Piece>& queue = batch.scores ? scores_ : moves_;
  if (!queue.empty()) batch.roughly = queue.front().request->roughly;
  while (!queue.empty() && batch.pieces.size() < device_.max_pieces() &&
         batch.particles + queue.front().n <= most && queue.front().request->roughly == batch.roughly) {
    batch.particles += queue.front().n;
    batch.pieces.push_back(queue.front());
    queue.pop_front();
  }
  if (!batch.scores)
    std::stable_sort(batch.pieces.begin(), batch.pieces.end(),
                     [](const Piece& a, const Piece& b) { return a.steps_left() > b.steps_left(); });
  return batch;
}

void ParticleService::run(Batch& batch, std::size_t lane) {
  if (batch.scores) {
    std::vector<ScorePiece> pieces;
    for (const Piece& p : batch.pieces)
      pieces.push_back({p.request->target, p.words(), p.request->margins.subspan(p.first, p.n)});
    return device_.score(lane, pieces, batch.roughly);
  }
  std::vector<MovePiece> pieces;
  batch.outcomes.reserve(batch.pieces.size());
  for (const Piece& p : batch.pieces) {
    const MoveRound& round = *p.request->round;
    batch.steps.push_back(std::min(options_.steps, p.steps_left()));
    batch.outcomes.emplace_back(p.request->length);
    pieces.push_back({.round = &round,
                      .target = p.request->target,
                      .first_particle = p.first,
                      .base = p.request->base,
                      .first_step = round.first + p.steps,
                      .n_steps = batch.steps.back(),
                      .states = p.words(),
                      .outcome = &batch.outcomes.back()});
  }
  device_.move(lane, pieces);
}

namespace {
void add_outcome(MoveOutcome& to, const MoveOutcome& from) {
  const auto add = [](Tally& a, const Tally& b) { a.proposed += b.proposed, a.accepted += b.accepted; };
  for (std::size_t i = 0; i < to.from.size(); ++i) to.from[i] += from.from[i];
  for (std::size_t i = 0; i < to.tally.single.size(); ++i) add(to.tally.single[i], from.tally.single[i]);
  add(to.tally.block, from.tally.block);
  add(to.tally.suffix, from.tally.suffix);
  to.accepted += from.accepted;
}
}  // namespace

// Under the lock. Pieces with moves left wait again, behind the others.
void ParticleService::finish(Batch& batch, Clock::time_point start, std::exception_ptr error) {
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - std::max(start, charged_until_)).count();
  charged_until_ = now;
  running_ -= batch.particles;
  double passes = 0.0;  // of particles through the model
  const auto passes_of = [&](std::size_t i) {
    return static_cast<double>(batch.pieces[i].n * (batch.scores ? 1 : batch.steps[i]));
  };
  if (!error)
    for (std::size_t i = 0; i < batch.pieces.size(); ++i) passes += passes_of(i);
  for (std::size_t i = 0; i < batch.pieces.size(); ++i) {
    Piece& piece = batch.pieces[i];
    Request& request = *piece.request;
    if (error) {
      request.error = error;
    } else {
      request.outcome.device_seconds += seconds * passes_of(i) / passes;
      if (!batch.scores) {
        add_outcome(request.outcome, batch.outcomes[i]);
        piece.steps += batch.steps[i];
      }
    }
    if (!error && !hurry_ && piece.steps_left() > 0) {
      moves_.push_back(piece);
      waiting_ += piece.n;
    } else if (--request.pieces_left == 0) {
      request.done.notify_one();  // the request may be gone after this lock
    }
  }
}

// A device that failed once is not asked again: everybody who waits is told.
void ParticleService::work(std::size_t lane) {
  for (std::unique_lock lock(mutex_);;) {
    wake_.wait(lock, [&] { return stop_ || worth_taking(); });
    if (stop_) return;
    Batch batch = take();
    waiting_ -= batch.particles;
    running_ += batch.particles;
    ++busy_lanes_;
    const std::exception_ptr failed_before = failure_;
    lock.unlock();
    wake_.notify_one();
    const auto start = Clock::now();
    std::exception_ptr error = failed_before;
    if (!error) try {
        run(batch, lane);
      } catch (...) {
        error = std::current_exception();
      }
    lock.lock();
    --busy_lanes_;
    if (error && !failure_) failure_ = error;
    finish(batch, start, error);
    wake_.notify_all();
  }
}

}  // namespace deeptail
