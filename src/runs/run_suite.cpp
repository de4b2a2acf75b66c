#include "runs/run_suite.h"

#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/write_file.h"

namespace deeptail {

namespace {

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::size_t count_done(const Grid& grid, const std::vector<std::size_t>& mine,
                       const CommittedItems& committed) {
  std::size_t n = 0;
  for (const std::size_t k : mine) n += committed.has(grid.items[k].id) ? 1 : 0;
  return n;
}

// How far the run is, for the watch. Items that run together ask from several threads.
class RunTeller {
 public:
  RunTeller(const Progress& now, const Watch& watch) : now_(now), watch_(watch) {}
  bool asks(const std::string& note = "") {
    const std::lock_guard lock(mutex_);
    Progress told = now_;
    told.note = note;
    return goes_on(watch_, told);
  }
  void tells(const Progress& now) {
    const std::lock_guard lock(mutex_);
    now_ = now;
    goes_on(watch_, now_);
  }

 private:
  std::mutex mutex_;
  Progress now_;
  const Watch& watch_;
};

}  // namespace

bool holds_run(const Grid& grid, const std::string& folder) {
  const std::string path = folder + "/run.json";
  if (!std::filesystem::exists(path)) return false;
  check_same_run(parse_run_header(read_from(path, 0), path), grid.header, folder);
  return true;
}

void open_run_folder(const Grid& grid, const std::string& folder, Claims& claims) {
  claims.wait_for(Claims::kHeader);
  remove_unfinished(folder + "/run.json");
  if (!holds_run(grid, folder)) {
    if (!shard_paths(folder).empty())
      throw InputError("{}: has shards, but no run.json that says of what; use another folder", folder)
          .with_hint(Hint::kOut);
    RunHeader header = grid.header;
    header.created = now_text();
    write_file(folder + "/run.json", to_json(header));
  }
  claims.release(Claims::kHeader);
}

RunEta::RunEta(const Grid& grid, const CommittedItems& committed) : committed_(committed) {
  std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> known;
  for (const GridItem& item : grid.items) {
    const auto [group, is_new] = known.try_emplace({item.variant, grid.pairs[item.pair].model},
                                                   static_cast<std::uint32_t>(groups_.size()));
    if (is_new) groups_.push_back({.variant = item.variant});
    ++groups_[group->second].left;
    group_of_.emplace(item.id, group->second);
  }
  take_in_new();
  before_ = done_;
  seconds_before_ = seconds_;
}

void RunEta::take_in_new() {
  for (; looked_at_ < committed_.in_order().size(); ++looked_at_) {
    const auto& [id, seconds] = *committed_.in_order()[looked_at_];
    const auto found = group_of_.find(id);
    if (found == group_of_.end()) continue;
    Group& group = groups_[found->second];
    group.seconds += seconds;
    ++group.done, --group.left;
    seconds_ += seconds;
    ++done_;
  }
}

double RunEta::work_left() const {
  std::map<std::uint32_t, Group> by_variant;
  for (const Group& group : groups_) {
    by_variant[group.variant].seconds += group.seconds;
    by_variant[group.variant].done += group.done;
  }
  double work = 0.0;
  for (const Group& group : groups_) {
    // Of a variant on a model, of a variant, of anything: what is known best.
    const Group& variant = by_variant[group.variant];
    const auto [sum, n] = group.done > 0     ? std::pair(group.seconds, group.done)
                          : variant.done > 0 ? std::pair(variant.seconds, variant.done)
                                             : std::pair(seconds_, done_);
    work += static_cast<double>(group.left) * sum / static_cast<double>(n);
  }
  return work;
}

Progress RunEta::progress() {
  take_in_new();
  Progress out = progress_of(done_, group_of_.size(), before_);
  // Seconds of work per second: below 1 where activations are captured, above where others help.
  const double speed = (seconds_ - seconds_before_) / watch_.seconds();
  if (speed > 0.0) out.seconds_left = work_left() / speed;
  return out;
}

RunWorker::RunWorker(const Grid& grid, const std::string& folder, const std::string& shard_name,
                     Claims& claims, CommittedItems& committed, ThreadPool& pool)
    : grid_(grid), claims_(claims), committed_(committed), runner_(grid, pool), writer_(folder, shard_name) {}

RunWorker::Done RunWorker::take(std::size_t index, const Watch& watch) {
  const GridItem& item = grid_.items[index];
  if (committed_.has(item.id)) return Done::kWasDone;
  if (!claims_.try_claim(index)) return Done::kTaken;
  struct Release {
    Claims& claims;
    std::size_t index;
    ~Release() { claims.release(index); }
  } const release{claims_, index};
  // Whoever had it before us committed before letting go of the claim: now it would be seen.
  committed_.refresh();
  if (committed_.has(item.id)) return Done::kWasDone;
  const auto line = runner_.run(item, watch);
  if (!line) return Done::kGivenUp;
  writer_.append(item.id, *line);
  return Done::kCommitted;
}

// Claims the item and others of its pair and variant; where draws are shared, of its replica.
std::vector<std::size_t> RunWorker::claim_like(std::size_t index, std::span<const std::size_t> others) {
  const GridItem& first = grid_.items[index];
  const bool shared = grid_.shares_draws(first);
  std::vector<std::size_t> claimed;
  const auto claim = [&](std::size_t k) {
    if (!committed_.has(grid_.items[k].id) && claims_.try_claim(k)) claimed.push_back(k);
  };
  claim(index);
  if (claimed.empty()) return claimed;
  for (const std::size_t k : others) {
    const GridItem& item = grid_.items[k];
    if (!shared && claimed.size() == kTargetsAtOnce) break;
    if (k != index && item.pair == first.pair && item.variant == first.variant &&
        (!shared || item.replica == first.replica))
      claim(k);
  }
  return claimed;
}

RunWorker::Done RunWorker::take_many(std::size_t index, std::span<const std::size_t> others,
                                     const Watch& watch, const std::function<void()>& committed) {
  if (committed_.has(grid_.items[index].id)) return Done::kWasDone;
  struct Release {
    Claims& claims;
    std::vector<std::size_t> held;
    ~Release() {
      for (const std::size_t k : held) claims.release(k);
    }
  } const claimed{claims_, claim_like(index, others)};
  if (claimed.held.empty()) return Done::kTaken;
  committed_.refresh();  // as in take()
  std::vector<const GridItem*> items;
  for (const std::size_t k : claimed.held)
    if (!committed_.has(grid_.items[k].id)) items.push_back(&grid_.items[k]);
  if (items.empty()) return Done::kWasDone;
  const auto commit = [&](const GridItem& item, const std::string& line) {
    writer_.append(item.id, line);
    committed();
  };
  return runner_.run_many(items, commit, watch) ? Done::kCommitted : Done::kGivenUp;
}

RunOutcome run_suite(const Grid& grid, const RunOptions& options, ThreadPool& pool, const Watch& watch) {
  const std::vector<std::size_t> mine = items_of_shard(grid, options.shard, options.n_shards, options.only);
  CommittedItems committed(options.out);
  RunOutcome outcome{.total = mine.size()};
  if (holds_run(grid, options.out)) {
    committed.refresh();
    outcome.done = count_done(grid, mine, committed);
    if (outcome.done == outcome.total) {
      outcome.kind = RunOutcome::Kind::kAlreadyFinished;
      return outcome;
    }
  }
  make_folder(options.out);
  Claims claims(options.out);
  open_run_folder(grid, options.out, claims);
  RunWorker worker(grid, options.out, fmt::format("{}of{}", options.shard, options.n_shards), claims,
                   committed, pool);
  RunEta eta(grid, committed);
  // More than once: a process that dies leaves the item it had claimed.
  bool stopped = false;
  std::size_t taken = 1;
  RunTeller teller(eta.progress(), watch);
  const Watch asked = [&](const Progress&) { return teller.asks(); };  // within an item
  const auto tell = [&] {
    ++taken;
    committed.refresh();
    teller.tells(eta.progress());
  };
  while (taken > 0 && !stopped) {
    taken = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const GridItem& item = grid.items[mine[i]];
      stopped = stopped || !teller.asks(committed.has(item.id) ? "" : grid.name_of(item));
      if (stopped) break;
      const bool many = worker.takes_many(mine[i]);
      const RunWorker::Done done = many ? worker.take_many(mine[i], std::span(mine).subspan(i), asked, tell)
                                        : worker.take(mine[i], asked);
      stopped = done == RunWorker::Done::kGivenUp;
      if (done == RunWorker::Done::kCommitted && !many) tell();
    }
  }
  committed.refresh();
  outcome.done = count_done(grid, mine, committed);
  using Kind = RunOutcome::Kind;
  outcome.kind = outcome.done == outcome.total ? Kind::kFinished
                 : stopped                     ? Kind::kStopped
                                               : Kind::kLeftToOthers;
  return outcome;
}

}  // namespace deeptail
