#include "runs/run_mpi.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "core/stopwatch.h"
#include "core/write_file.h"

namespace deeptail {

namespace {

enum Tag { kAsk = 1, kGive = 2 };
enum Asking : std::int64_t { kReady = 0, kStopping = 1 };
constexpr std::int64_t kNothingLeft = -1;
constexpr double kLookForLost = 5.0;  // seconds

// Rank 0's view of the work.
struct HandOut {
  std::deque<std::size_t> waiting = {};        // indices of items
  std::map<int, std::size_t> at_work = {};     // by rank
  std::map<int, std::size_t> suspicious = {};  // at work on something that nobody claims
  std::vector<int> idle = {};                  // ranks that wait for work
  std::set<std::size_t> returned = {};         // items that a rank came back from without a result
  int active = 0;                              // ranks that may still ask
  std::size_t lost = 0;                        // ranks that died
};

// A rank that dies takes its claims with it. Where the launcher goes on without it (by default mpirun ends
// the job), its item goes to another rank.
void look_for_lost(HandOut& work, const Grid& grid, const CommittedItems& committed, Claims& claims) {
  std::map<int, std::size_t> suspicious;
  for (const auto& [rank, index] : work.at_work) {
    if (committed.has(grid.items[index].id) || !claims.try_claim(index)) continue;
    claims.release(index);
    suspicious[rank] = index;
  }
  for (const auto& [rank, index] : suspicious) {
    // Twice in a row: not just a rank that has not claimed it yet.
    if (const auto before = work.suspicious.find(rank);
        before == work.suspicious.end() || before->second != index)
      continue;
    work.at_work.erase(rank);
    work.waiting.push_front(index);
    --work.active;
    ++work.lost;
  }
  work.suspicious = std::move(suspicious);
}

// What the rank was at. Without a result somebody else had claimed it: perhaps only this rank, in the moment
// of looking for lost ones, so it is given out once more.
void take_back(HandOut& work, int rank, const Grid& grid, const CommittedItems& committed) {
  const auto found = work.at_work.find(rank);
  if (found == work.at_work.end()) return;
  const std::size_t index = found->second;
  work.at_work.erase(found);
  if (!committed.has(grid.items[index].id) && work.returned.insert(index).second)
    work.waiting.push_back(index);
}

// Gives work to the ranks that wait for it. They are sent home only when nobody is at work any more, since
// what is at work may have to be done again.
void serve(HandOut& work, bool stop) {
  while (!work.idle.empty()) {
    std::int64_t index = kNothingLeft;
    if (!stop && !work.waiting.empty()) {
      index = static_cast<std::int64_t>(work.waiting.front());
      work.at_work[work.idle.back()] = work.waiting.front();
      work.waiting.pop_front();
    } else if (!stop && !work.at_work.empty()) {
      return;
    } else {
      --work.active;
    }
    MPI_Send(&index, 1, MPI_INT64_T, work.idle.back(), kGive, MPI_COMM_WORLD);
    work.idle.pop_back();
  }
}

// Waiting inside MPI would take a whole core from the others.
bool message_there(int source, Tag tag, MPI_Status& status) {
  int there = 0;
  MPI_Iprobe(source, tag, MPI_COMM_WORLD, &there, &status);
  if (there == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return there != 0;
}

RunOutcome hand_out(const Grid& grid, const RunOptions& options, int ranks, const Watch& watch) {
  Claims claims(options.out);
  CommittedItems committed(options.out);
  committed.refresh();
  HandOut work{.active = ranks - 1};
  std::set<std::uint32_t> shared;  // turns of items that a rank takes with all of their turn
  for (std::size_t k = 0; k < grid.items.size(); ++k) {
    const GridItem& item = grid.items[k];
    if (committed.has(item.id)) continue;
    if (!grid.shares_draws(item) || shared.insert(item.turn).second) work.waiting.push_back(k);
  }
  const bool was_finished = work.waiting.empty();
  RunEta eta(grid, committed);
  Progress now = eta.progress();
  Stopwatch looked;
  while (work.active > 0) {
    MPI_Status status;
    if (message_there(MPI_ANY_SOURCE, kAsk, status)) {
      std::int64_t asking = kReady;
      MPI_Recv(&asking, 1, MPI_INT64_T, status.MPI_SOURCE, kAsk, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      committed.refresh();
      take_back(work, status.MPI_SOURCE, grid, committed);
      if (asking == kReady)
        work.idle.push_back(status.MPI_SOURCE);
      else
        --work.active;
      now = eta.progress();
    } else if (looked.seconds() >= kLookForLost) {
      looked.restart();
      committed.refresh();
      look_for_lost(work, grid, committed, claims);
    }
    serve(work, !goes_on(watch, now));
  }
  committed.refresh();
  RunOutcome outcome{.total = grid.items.size()};
  for (const GridItem& item : grid.items) outcome.done += committed.has(item.id) ? 1 : 0;
  using Kind = RunOutcome::Kind;
  outcome.kind = was_finished                    ? Kind::kAlreadyFinished
                 : outcome.done == outcome.total ? Kind::kFinished
                 : goes_on(watch, now)           ? Kind::kLeftToOthers
                                                 : Kind::kStopped;
  if (work.lost == 0) return outcome;
  // MPI cannot end in order without the lost ranks; everything is on the disk.
  std::fprintf(stderr, "deeptail: %zu ranks were lost; %zu of %zu items are done\n", work.lost, outcome.done,
               outcome.total);
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, outcome.done == outcome.total ? 0 : 1);
  std::abort();
}

// True when a signal stopped it.
bool work_as_told(const Grid& grid, const RunOptions& options, int rank, ThreadPool& pool,
                  const Watch& watch) {
  Claims claims(options.out);
  CommittedItems committed(options.out);
  RunWorker worker(grid, options.out, fmt::format("rank{}", rank), claims, committed, pool);
  std::vector<std::size_t> all(grid.items.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const Watch asked = [&](const Progress&) { return goes_on(watch, {}); };  // rank 0 tells how far the run is
  for (bool given_up = false;;) {
    const std::int64_t asking = given_up || !goes_on(asked, {}) ? kStopping : kReady;
    MPI_Send(&asking, 1, MPI_INT64_T, 0, kAsk, MPI_COMM_WORLD);
    if (asking == kStopping) return true;
    MPI_Status status;
    while (!message_there(0, kGive, status)) continue;
    std::int64_t index = kNothingLeft;
    MPI_Recv(&index, 1, MPI_INT64_T, 0, kGive, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (index == kNothingLeft) return !goes_on(asked, {});
    const auto k = static_cast<std::size_t>(index);
    const RunWorker::Done done =
        grid.shares_draws(grid.items[k]) ? worker.take_many(k, all, asked, [] {}) : worker.take(k, asked);
    given_up = done == RunWorker::Done::kGivenUp;
  }
}

}  // namespace

std::optional<RunOutcome> run_suite_mpi(const Grid& grid, const RunOptions& options, std::size_t threads,
                                        const Watch& watch) {
  // Errors of one rank end the job: MPI_Finalize would wait for the others for ever.
  struct Job {
    int rank = 0, ranks = 1;
    bool good = false;
    Job() {
      MPI_Init(nullptr, nullptr);
      MPI_Comm_rank(MPI_COMM_WORLD, &rank);
      MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    }
    ~Job() {
      if (good) MPI_Finalize();
    }
  } job;
  if (options.n_shards != 1)
    throw InputError("a run over MPI shares out all of its items; expected no shards, found {}",
                     options.n_shards)
        .with_hint(Hint::kShard);
  if (!options.only.empty())
    throw InputError("a run over MPI shares out all of its items; expected all methods of the suite")
        .with_hint(Hint::kOnly);
  std::optional<RunOutcome> outcome;
  try {
    if (job.ranks == 1) {
      ThreadPool pool(threads);
      outcome = run_suite(grid, options, pool, watch);
    } else {
      if (job.rank == 0) {
        make_folder(options.out);
        Claims claims(options.out);
        open_run_folder(grid, options.out, claims);
      }
      MPI_Barrier(MPI_COMM_WORLD);
      if (job.rank == 0) {
        outcome = hand_out(grid, options, job.ranks, watch);
      } else {
        ThreadPool pool(threads);
        if (work_as_told(grid, options, job.rank, pool, watch))
          outcome = RunOutcome{.kind = RunOutcome::Kind::kStopped};
      }
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "deeptail: rank %d: %s\n", job.rank, e.what());
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, dynamic_cast<const InputError*>(&e) != nullptr ? 2 : 1);
    std::abort();
  }
  job.good = true;
  return outcome;
}

}  // namespace deeptail
