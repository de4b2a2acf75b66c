#include "estimators/tokensplit/called_scores.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/stopwatch.h"

namespace deeptail {

namespace {

// However long a population that does not wait takes for its next question, the others go on.
constexpr auto kLongestWait = std::chrono::milliseconds(5);
constexpr std::size_t kMostRows = std::size_t{1} << 20;

}  // namespace

void CalledScoresConfig::validate() const {
  if (!score) throw InputError("score: expected a function, found none");
  if (batch < 1 || batch > kMostRows)
    throw InputError("batch {}: expected a whole number from 1 to {}", batch, kMostRows);
  for (const std::size_t n : smaller)
    if (n < 1 || n >= batch)
      throw InputError("a smaller batch of {} rows: expected a whole number from 1 to {}", n, batch - 1);
  if (!(near >= 0.0) || !std::isfinite(near))
    throw InputError("near {}: expected a number of at least 0", near);
}

// Rows of one population; on the stack of its thread.
struct CalledScores::Service::Request {
  const EventInputs& inputs;
  std::uint32_t event;
  std::span<double> out;
  std::size_t taken = 0, done = 0;
  std::condition_variable answered = {};
};

struct CalledScores::Service::Batch {
  struct Piece {
    Request* request;
    std::size_t first, count;  // of its rows
  };
  bool exactly = false;
  std::size_t length = 0, n_numbers = 0, rows = 0;
  std::vector<Piece> pieces;
  std::vector<TokenId> tokens;         // [batch, length]
  std::vector<std::uint32_t> lengths;  // [batch]
  std::vector<std::uint64_t> numbers;  // [batch, n_numbers]
  std::vector<std::uint32_t> which;    // [batch]
  std::vector<double> out;             // [batch]
};

CalledScores::Service::Service(CalledScoresConfig config) : config_(std::move(config)) {
  config_.validate();
  std::sort(config_.smaller.begin(), config_.smaller.end());
  constexpr std::size_t kThreads = 2;
  for (std::size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { work(); });
}

CalledScores::Service::~Service() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void CalledScores::Service::join() {
  const std::lock_guard lock(mutex_);
  ++populations_;
}

void CalledScores::Service::leave() {
  {
    const std::lock_guard lock(mutex_);
    --populations_;
  }
  wake_.notify_all();
}

bool CalledScores::Service::scores(const EventInputs& inputs, std::uint32_t event, bool exactly,
                                   std::span<double> out) {
  if (out.empty()) return !gave_up();
  Request request{inputs, event, out};
  std::unique_lock lock(mutex_);
  if (gave_up_) return false;
  ++asking_;
  const bool first = rows_waiting() == 0;
  waiting_[exactly].push_back(&request);
  rows_[exactly] += out.size();
  (exactly ? counts_.exact_rows : counts_.rows) += out.size();
  if ((first && running_ == 0) || worth_taking()) wake_.notify_one();
  request.answered.wait(lock, [&] { return request.done == out.size(); });
  return !gave_up_;
}

CalledScores::Counts CalledScores::Service::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}
void CalledScores::Service::count_farther(std::uint64_t n) {
  const std::lock_guard lock(mutex_);
  counts_.farther += n;
}
bool CalledScores::Service::gave_up() const {
  const std::lock_guard lock(mutex_);
  return gave_up_;
}
std::exception_ptr CalledScores::Service::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

// A full batch, or nobody is left who could add to it.
bool CalledScores::Service::worth_taking() const {
  return full() || (running_ == 0 && rows_waiting() > 0 && asking_ >= populations_);
}

// False: there is nothing to take, for once.
bool CalledScores::Service::wait_for_rows(std::unique_lock<std::mutex>& lock) {
  wake_.wait(lock, [&] { return stop_ || full() || (running_ == 0 && rows_waiting() > 0); });
  wake_.wait_for(lock, kLongestWait, [&] { return stop_ || worth_taking(); });
  return full() || (running_ == 0 && rows_waiting() > 0);
}

void CalledScores::Service::work() {
  Batch batch;
  for (std::unique_lock lock(mutex_); !stop_;) {
    if (!wait_for_rows(lock)) continue;
    ++running_;
    take(batch);
    lock.unlock();
    const bool good = call(batch);
    lock.lock();
    --running_;
    finish(batch, good);
    if (!good) answer_all();
  }
}

// False: the function said stop or failed, now or before.
bool CalledScores::Service::call(Batch& batch) {
  const std::lock_guard alone(calling_);
  if (gave_up()) return false;
  bool good = false;
  std::exception_ptr error;
  const Stopwatch stopwatch;
  try {
    good = (batch.exactly ? config_.exact : config_.score)(
        {{batch.tokens, batch.length, batch.lengths}, batch.numbers, batch.which}, batch.out);
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  counts_.seconds += stopwatch.seconds();
  if (!good) {
    gave_up_ = true;
    error_ = error;
  }
  return good;
}

// The size of a batch for so many rows: the smallest that holds them, unless the next smaller one can be filled and that
// one would be a quarter copies; the rest then waits for company.
std::size_t CalledScores::Service::size_for(std::size_t rows) const {
  constexpr double kFullEnough = 0.75;
  std::size_t full = 0;
  for (const std::size_t n : config_.smaller) {
    if (n >= rows)
      return full > 0 && static_cast<double>(rows) < kFullEnough * static_cast<double>(n) ? full : n;
    full = n;
  }
  const auto largest = static_cast<double>(config_.batch);
  return full > 0 && static_cast<double>(rows) < kFullEnough * largest ? full : config_.batch;
}

// Rows in the order of their arrival.
void CalledScores::Service::take(Batch& batch) {
  batch.exactly = rows_[1] > rows_[0];
  std::deque<Request*>& queue = waiting_[batch.exactly];
  const std::size_t n = size_for(rows_[batch.exactly]);
  batch.n_numbers = config_.numbers;
  batch.length = queue.front()->inputs.inputs.length;
  batch.tokens.resize(n * batch.length);
  batch.lengths.resize(n);
  batch.numbers.resize(n * batch.n_numbers);
  batch.which.resize(n);
  batch.out.resize(n);
  batch.pieces.clear();
  batch.rows = 0;
  while (batch.rows < n && !queue.empty()) {
    Request& request = *queue.front();
    add_rows(batch, request, std::min(n - batch.rows, request.out.size() - request.taken));
    if (request.taken == request.out.size()) queue.pop_front();
  }
  rows_[batch.exactly] -= batch.rows;
  ++counts_.batches;
  counts_.padded += n - batch.rows;
  add_copies(batch, n);
}

void CalledScores::Service::add_rows(Batch& batch, Request& request, std::size_t count) {
  const std::size_t first = request.taken, numbers = batch.n_numbers;
  const TokenBatch rows = request.inputs.inputs.part(first, count);
  std::copy(rows.tokens.begin(), rows.tokens.end(), batch.tokens.data() + batch.rows * batch.length);
  for (std::size_t i = 0; i < count; ++i)
    batch.lengths[batch.rows + i] = static_cast<std::uint32_t>(rows.length_of(i));
  std::copy_n(request.inputs.numbers.data() + first * numbers, count * numbers,
              batch.numbers.data() + batch.rows * numbers);
  std::fill_n(batch.which.data() + batch.rows, count, request.event);
  batch.pieces.push_back({&request, first, count});
  batch.rows += count;
  request.taken += count;
}

// The last rows of n are copies of the first where there are too few.
void CalledScores::Service::add_copies(Batch& batch, std::size_t n) {
  const std::size_t length = batch.length, numbers = batch.n_numbers;
  for (std::size_t i = batch.rows; i < n; ++i) {
    std::copy_n(batch.tokens.data(), length, batch.tokens.data() + i * length);
    std::copy_n(batch.numbers.data(), numbers, batch.numbers.data() + i * numbers);
    batch.lengths[i] = batch.lengths[0];
    batch.which[i] = batch.which[0];
  }
}

void CalledScores::Service::finish(Batch& batch, bool good) {
  std::size_t row = 0;
  for (const Batch::Piece& piece : batch.pieces) {
    for (std::size_t i = 0; i < piece.count; ++i)
      piece.request->out[piece.first + i] =
          good ? batch.out[row + i] : -std::numeric_limits<double>::infinity();
    row += piece.count;
    piece.request->done += piece.count;
    if (piece.request->done == piece.request->out.size()) answer(*piece.request);
  }
}

void CalledScores::Service::answer(Request& request) {
  --asking_;
  request.answered.notify_one();
}

// Whoever waits, or will, gets nothing. Rows of a batch that was taken are the batch's to answer.
void CalledScores::Service::answer_all() {
  for (std::deque<Request*>& queue : waiting_) {
    for (Request* request : queue) {
      const std::size_t left = request->out.size() - request->taken;
      std::fill_n(request->out.begin() + static_cast<std::ptrdiff_t>(request->taken), left,
                  -std::numeric_limits<double>::infinity());
      request->taken += left;
      request->done += left;
      if (request->done == request->out.size()) answer(*request);
    }
    queue.clear();
  }
  rows_[0] = rows_[1] = 0;
}

CalledScores::CalledScores(CalledScoresConfig config)
    : service_(std::make_unique<Service>(std::move(config))) {}
CalledScores::~CalledScores() = default;
CalledScores::Counts CalledScores::counts() const { return service_->counts(); }
const CalledScoresConfig& CalledScores::config() const { return service_->config(); }
bool CalledScores::gave_up() const { return service_->gave_up(); }
void CalledScores::rethrow() const {
  if (const std::exception_ptr error = service_->error()) std::rethrow_exception(error);
}

}  // namespace deeptail
