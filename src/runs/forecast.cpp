#include "runs/forecast.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "core/stopwatch.h"

namespace deeptail {

namespace {

// A probe is cut after so long, and the rest of it told from its share of the work.
constexpr double kProbeSeconds = 1.0;
constexpr double kLeastShare = 0.01;  // of the work, before it may be cut
constexpr double kCaptureSeconds = 0.5;
constexpr double kQuickProbe = 0.3;  // a probe this quick is followed by two more, on other targets
constexpr std::size_t kProbedTogether = 32;
constexpr std::size_t kPairsPerKind = 3;
constexpr double kSecondLooks = 35.0;  // after that one probe of each kind must do
// Work is not even: what takes longer than this is looked at for longer in the time that is left.
constexpr double kLongItem = 5.0, kLongestProbe = 10.0;

struct Measured {
  double sum = 0.0;
  std::size_t n = 0;
  void add(double x) { sum += x, ++n; }
  double mean() const { return n == 0 ? 0.0 : sum / static_cast<double>(n); }
};

using PairVariant = std::pair<std::uint32_t, std::uint32_t>;
constexpr std::uint32_t kCapture = std::numeric_limits<std::uint32_t>::max();  // in place of a variant

// What is to do, and what is known of how long it takes.
struct Knowledge {
  std::map<PairVariant, std::vector<const GridItem*>> left;  // each sorted by q
  std::map<PairVariant, Measured> seconds;                   // per item; of kCapture, per activation
};

Knowledge read_folder(const Grid& grid, const RunOptions& options, Forecast& out) {
  CommittedItems committed(options.out);
  if (holds_run(grid, options.out)) committed.refresh();
  Knowledge known;
  for (const GridItem& item : grid.items)
    if (const auto found = committed.seconds().find(item.id); found != committed.seconds().end())
      known.seconds[{item.pair, item.variant}].add(found->second);
  const std::vector<std::size_t> mine = items_of_shard(grid, options.shard, options.n_shards, options.only);
  for (const std::size_t k : mine) {
    const GridItem& item = grid.items[k];
    if (committed.has(item.id))
      ++out.done;
    else
      known.left[{item.pair, item.variant}].push_back(&item);
  }
  out.items = mine.size();
  for (auto& [key, items] : known.left)
    std::stable_sort(items.begin(), items.end(), [&](const GridItem* a, const GridItem* b) {
      const auto& targets = grid.pairs[a->pair].targets;
      return targets[a->target].count < targets[b->target].count;
    });
  return known;
}

// Pairs of one kind take about the same time: those of one model or, where only activations are looked at, of
// models of the same width and vocabulary.
std::string kind_of(const Grid& grid, std::uint32_t pair, bool on_activations) {
  const std::string& name = grid.pairs[pair].model;
  if (on_activations)
    for (const RunHeader::Model& model : grid.header.models)
      if (model.name == name) return fmt::format("{} x {}", model.d_model, model.d_vocab);
  return name;
}

bool on_activations(const Grid& grid, std::uint32_t variant) {
  return grid.suite.variants[variant].method.needs_activations();
}

// Of every variant and kind, the pairs to probe: the middle one, the first, the last.
struct ProbePlan {
  std::vector<PairVariant> first, more;
};
ProbePlan plan_probes(const Grid& grid, const Knowledge& known) {
  std::map<std::pair<std::uint32_t, std::string>, std::vector<PairVariant>> kinds;
  for (const auto& [key, items] : known.left)
    kinds[{key.second, kind_of(grid, key.first, on_activations(grid, key.second))}].push_back(key);
  ProbePlan plan;
  for (const auto& [kind, keys] : kinds) {
    std::vector<std::size_t> places = {keys.size() / 2, 0, keys.size() - 1};
    places.resize(std::min(kPairsPerKind, keys.size()));
    for (std::size_t i = 0; i < places.size(); ++i)
      if (!known.seconds.contains(keys[places[i]]))
        (i == 0 ? plan.first : plan.more).push_back(keys[places[i]]);
  }
  // What shares a model and activations is together.
  const auto place = [&](const PairVariant& key) {
    return std::tuple(key.first, grid.suite.variants[key.second].method.calibration, key.second);
  };
  std::sort(plan.first.begin(), plan.first.end(),
            [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return plan;
}

// Seconds that the item would take in all. What comes before its first sign of progress is done once, so the
// rest is told from the speed after it.
double probe(ItemRunner& runner, const GridItem& item, double most_seconds = kProbeSeconds) {
  const Stopwatch watch;
  struct Sign {
    double seconds, share;
  };
  std::optional<Sign> first, last;
  const auto look = [&](const Progress& p) {
    if (p.share <= 0.0) return true;  // activations first
    last = {watch.seconds(), p.share};
    if (!first) first = last;
    return last->seconds - first->seconds < most_seconds || p.share - first->share < kLeastShare ||
           p.share >= 1.0;
  };
  const bool finished = runner.run(item, look).has_value();
  const double seconds = runner.last_seconds();
  if (finished) return seconds;
  const double rate = (last->share - first->share) / (last->seconds - first->seconds);
  return seconds + (1.0 - last->share) / rate;
}

void probe_group(const Grid& grid, ItemRunner& runner, const std::vector<const GridItem*>& items,
                 Knowledge& known) {
  const std::size_t n = items.size();
  if (grid.shares_draws(*items[0])) {  // one takes as long as all
    const auto n_targets = static_cast<double>(grid.pairs[items[0]->pair].targets.size());
    known.seconds[{items[0]->pair, items[0]->variant}].add(probe(runner, *items[0]) / n_targets);
    return;
  }
  if (runner.runs_many(*items[0])) {
    const std::size_t probed = std::min(n, kProbedTogether);
    std::vector<const GridItem*> some;
    for (std::size_t i = 0; i < probed; ++i) some.push_back(items[i * n / probed]);
    const Stopwatch watch;
    runner.run_many(some, [](const GridItem&, const std::string&) {}, {});
    known.seconds[{items[0]->pair, items[0]->variant}].add(watch.seconds() / static_cast<double>(probed));
    return;
  }
  std::vector<std::size_t> places = {n / 2};
  for (std::size_t i = 0; i < places.size(); ++i) {
    const GridItem& item = *items[places[i]];
    const double seconds = probe(runner, item);
    known.seconds[{item.pair, item.variant}].add(seconds);
    if (i == 0 && n >= 3 && seconds < kQuickProbe) places.insert(places.end(), {n / 6, n - 1 - n / 6});
  }
}

// Longer looks at items that were cut early, where the most time is at stake first.
void probe_longer(ItemRunner& runner, std::vector<PairVariant> keys, const std::function<double()>& left,
                  Knowledge& known) {
  const auto at_stake = [&](const PairVariant& key) {
    return static_cast<double>(known.left[key].size()) * known.seconds[key].mean();
  };
  std::erase_if(keys, [&](const PairVariant& key) {
    return !known.seconds.contains(key) || known.seconds[key].mean() < kLongItem ||
           runner.runs_many(*known.left[key].front());
  });
  std::stable_sort(keys.begin(), keys.end(),
                   [&](const auto& a, const auto& b) { return at_stake(a) > at_stake(b); });
  for (const PairVariant& key : keys) {
    const double most_seconds = std::min(kLongestProbe, left() / 2);
    if (most_seconds < 2 * kProbeSeconds) return;
    const std::vector<const GridItem*>& items = known.left[key];
    known.seconds[key] = {};
    known.seconds[key].add(probe(runner, *items[items.size() / 2], most_seconds));
  }
}

// How fast activations of the item's pair are made.
void probe_capture(const Grid& grid, ItemRunner& runner, const GridItem& item, Knowledge& known) {
  const std::uint64_t wanted = grid.suite.variants[item.variant].method.calibration;
  if (!on_activations(grid, item.variant) || known.seconds.contains({item.pair, kCapture})) return;
  runner.prepare(item, {});
  known.seconds[{item.pair, kCapture}].add(runner.capture_seconds() / static_cast<double>(wanted));
}

// What is known of this pair, or of others of its kind, or of any.
double known_seconds(const Grid& grid, const Knowledge& known, const PairVariant& key) {
  if (const auto exact = known.seconds.find(key); exact != known.seconds.end()) return exact->second.mean();
  const bool cloud = key.second != kCapture && on_activations(grid, key.second);
  const std::string kind = kind_of(grid, key.first, cloud);
  Measured same_kind, any;
  for (const auto& [other, measured] : known.seconds) {
    if (other.second != key.second) continue;
    any.add(measured.mean());
    if (kind_of(grid, other.first, cloud) == kind) same_kind.add(measured.mean());
  }
  return same_kind.n > 0 ? same_kind.mean() : any.mean();
}

void sum_up(const Grid& grid, const Knowledge& known, Forecast& out) {
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>> clouds;  // pair, replica, calibration
  for (const SuiteVariant& variant : grid.suite.variants) out.rows.push_back({.variant = variant.label});
  for (const auto& [key, items] : known.left) {
    Forecast::Row& row = out.rows[key.second];
    row.items += items.size();
    row.seconds += static_cast<double>(items.size()) * known_seconds(grid, known, key);
    const Method& method = grid.suite.variants[key.second].method;
    for (const GridItem* item : items)
      if (method.needs_activations()) clouds.insert({item->pair, item->replica, method.calibration});
  }
  for (const auto& [pair, replica, calibration] : clouds)
    out.capture_seconds += static_cast<double>(calibration) * known_seconds(grid, known, {pair, kCapture});
}

}  // namespace

double Forecast::seconds() const {
  double sum = capture_seconds;
  for (const Row& row : rows) sum += row.seconds;
  return sum;
}

Forecast forecast_run(const Grid& grid, const RunOptions& options, ThreadPool& pool, const Watch& watch) {
  Forecast out;
  const Stopwatch stopwatch;
  Knowledge known = read_folder(grid, options, out);
  ItemRunner runner(grid, pool, kCaptureSeconds);
  ProbePlan plan = plan_probes(grid, known);
  std::size_t done = 0;
  bool going = true;
  const auto probe_pair = [&](const PairVariant& key) {
    going = going && goes_on(watch, progress_of(done++, plan.first.size() + plan.more.size()));
    if (!going) return;
    probe_capture(grid, runner, *known.left[key].front(), known);
    probe_group(grid, runner, known.left[key], known);
  };
  for (const PairVariant& key : plan.first) probe_pair(key);
  // Every model's activations, also where another's told how long it takes to look at them.
  std::set<std::string> captured;
  for (const auto& [key, measured] : known.seconds)
    if (key.second == kCapture) captured.insert(grid.pairs[key.first].model);
  for (const auto& [key, items] : known.left)
    if (going && on_activations(grid, key.second) && captured.insert(grid.pairs[key.first].model).second)
      probe_capture(grid, runner, *items.front(), known);
  // Second looks, where the most time is at stake first.
  const auto at_stake = [&](const PairVariant& key) {
    return static_cast<double>(known.left[key].size()) * known_seconds(grid, known, key);
  };
  std::stable_sort(plan.more.begin(), plan.more.end(),
                   [&](const auto& a, const auto& b) { return at_stake(a) > at_stake(b); });
  for (const PairVariant& key : plan.more)
    if (stopwatch.seconds() < kSecondLooks) probe_pair(key);
  if (going) {
    std::vector<PairVariant> keys = plan.first;
    keys.insert(keys.end(), plan.more.begin(), plan.more.end());
    const auto left = [&] { return kSecondLooks - stopwatch.seconds(); };
    probe_longer(runner, std::move(keys), left, known);
  }

  sum_up(grid, known, out);
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  out.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  return out;
}

}  // namespace deeptail
