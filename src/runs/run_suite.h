// A run: every item of a grid once, into a folder, by any number of processes.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/stopwatch.h"
#include "runs/claims.h"
#include "runs/grid.h"
#include "runs/item_runner.h"
#include "runs/run_folder.h"

namespace deeptail {

struct RunOptions {
  std::string out = {};
  std::size_t shard = 1, n_shards = 1;  // 1 <= shard <= n_shards
  std::vector<std::string> only = {};   // methods or variants; empty: all
};

struct RunOutcome {
  enum class Kind { kFinished, kAlreadyFinished, kStopped, kLeftToOthers } kind = Kind::kFinished;
  std::size_t done = 0, total = 0;  // of this shard
};

// Does what is missing of the shard. The watch is told items of the whole grid, with the name of one that
// begins; when it stops the run, the item in flight is given up. Throws InputError when the folder holds
// another run or cannot be written.
RunOutcome run_suite(const Grid& grid, const RunOptions& options, ThreadPool& pool, const Watch& watch);

// --- its parts, for other ways to hand out items ---

// Throws InputError unless the folder is new or holds this run; then writes run.json where it is missing.
void open_run_folder(const Grid& grid, const std::string& folder, Claims& claims);
// Is there a run.json, and is it of this grid?
bool holds_run(const Grid& grid, const std::string& folder);

// How long what is left will take, from what items took until now, whoever did them. Must not outlive grid
// and committed.
class RunEta {
 public:
  RunEta(const Grid& grid, const CommittedItems& committed);
  Progress progress();  // looks at what was committed since the last call

 private:
  struct Group {  // items of one variant on one model
    std::uint32_t variant = 0;
    double seconds = 0.0;  // that those that are done took
    std::size_t done = 0, left = 0;
  };
  void take_in_new();
  double work_left() const;  // seconds

  const CommittedItems& committed_;
  std::unordered_map<std::string_view, std::uint32_t> group_of_;  // by id
  std::vector<Group> groups_;
  std::size_t looked_at_ = 0;                    // of what is committed
  std::size_t done_ = 0, before_ = 0;            // items; before: when it started
  double seconds_ = 0.0, seconds_before_ = 0.0;  // that they took
  Stopwatch watch_;
};

// One process's share of a run: claims, computes and commits single items.
class RunWorker {
 public:
  RunWorker(const Grid& grid, const std::string& folder, const std::string& shard_name, Claims& claims,
            CommittedItems& committed, ThreadPool& pool);

  enum class Done { kCommitted, kWasDone, kTaken, kGivenUp };
  Done take(std::size_t index, const Watch& watch);

  // Whether this item is better taken with others.
  bool takes_many(std::size_t index) const { return runner_.runs_many(grid_.items[index]); }
  // The item and those of the others that it can run with, which are neither done nor taken. committed is
  // called after each.
  Done take_many(std::size_t index, std::span<const std::size_t> others, const Watch& watch,
                 const std::function<void()>& committed);

 private:
  std::vector<std::size_t> claim_like(std::size_t index, std::span<const std::size_t> others);

  const Grid& grid_;
  Claims& claims_;
  CommittedItems& committed_;
  ItemRunner runner_;
  ShardWriter writer_;
};

}  // namespace deeptail
