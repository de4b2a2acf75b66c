#include "bench/forecast.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <tuple>

namespace deeptail {

namespace {

constexpr std::size_t kPairsPerModel = 3;
constexpr double kProbeSeconds =
    2.5;  // then a probe is cut, and the rest of it told from its share of the work
constexpr double kLeastShare = 0.02;  // of the work, before it may be cut
constexpr std::size_t kProbedTogether = 32;
constexpr double kQuickProbe = 1.0;  // a probe this quick is followed by two more, on other targets

struct Measured {
  double sum = 0.0;
  std::size_t n = 0;
  void add(double x) { sum += x, ++n; }
  double mean() const { return n == 0 ? 0.0 : sum / static_cast<double>(n); }
};

using PairVariant = std::pair<std::uint32_t, std::uint32_t>;
using CloudKey = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // pair, replica, calibration

// What is to do, and what is known of how long it takes.
struct Knowledge {
  std::map<PairVariant, std::vector<const GridItem*>> left;  // each sorted by q
  std::map<PairVariant, Measured> items;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Measured> captures;  // by pair and calibration
};

Knowledge read_folder(const Grid& grid, const RunOptions& options, Forecast& out) {
  CommittedItems committed(options.out);
  if (holds_run(grid, options.out)) committed.refresh();
  Knowledge known;
  for (const GridItem& item : grid.items)
    if (const auto found = committed.seconds().find(item.id); found != committed.seconds().end())
      known.items[{item.pair, item.variant}].add(found->second);
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

// A few pairs of every model, spread over its distributions.
std::set<std::uint32_t> pairs_to_probe(const Grid& grid, const Knowledge& known) {
  std::map<std::string, std::vector<std::uint32_t>> by_model;
  for (std::uint32_t p = 0; p < grid.pairs.size(); ++p)
    if (std::any_of(known.left.begin(), known.left.end(),
                    [&](const auto& entry) { return entry.first.first == p; }))
      by_model[grid.pairs[p].model].push_back(p);
  std::set<std::uint32_t> out;
  for (const auto& [model, pairs] : by_model)
    for (std::size_t i = 0; i < std::min(kPairsPerModel, pairs.size()); ++i)
      out.insert(pairs[i * (pairs.size() - 1) /
                       std::max<std::size_t>(1, std::min(kPairsPerModel, pairs.size()) - 1)]);
  return out;
}

// Seconds that the item would take in all. What comes before its first sign of progress is done once, so the
// rest is told from the speed after it.
double probe(ItemRunner& runner, const GridItem& item) {
  using Clock = std::chrono::steady_clock;
  struct Sign {
    Clock::time_point time;
    double share;
  };
  std::optional<Sign> first, last;
  const auto keep_going = [&](double share) {
    if (share <= 0.0) return true;  // activations first
    last = {Clock::now(), share};
    if (!first) first = last;
    const double seconds = std::chrono::duration<double>(last->time - first->time).count();
    return seconds < kProbeSeconds || share - first->share < kLeastShare || share >= 1.0;
  };
  const bool finished = runner.run(item, keep_going).has_value();
  const double seconds = runner.last_seconds();
  if (finished) return seconds;
  const double rate =
      (last->share - first->share) / std::chrono::duration<double>(last->time - first->time).count();
  return seconds + (1.0 - last->share) / rate;
}

void probe_group(const Grid& grid, ItemRunner& runner, const std::vector<const GridItem*>& items,
                 Knowledge& known) {
  const std::size_t n = items.size();
  if (runner.runs_many(*items[0])) {
    const std::size_t probed = std::min(n, kProbedTogether);
    std::vector<const GridItem*> some;
    for (std::size_t i = 0; i < probed; ++i) some.push_back(items[i * n / probed]);
    const auto start = std::chrono::steady_clock::now();
    runner.run_many(
        some, [](const GridItem&, const std::string&) {}, [] { return true; });
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    known.items[{items[0]->pair, items[0]->variant}].add(spent.count() / static_cast<double>(probed));
    return;
  }
  std::vector<std::size_t> places = {n / 2};
  for (std::size_t i = 0; i < places.size(); ++i) {
    const GridItem& item = *items[places[i]];
    const double seconds = probe(runner, item);
    known.items[{item.pair, item.variant}].add(seconds);
    if (i == 0 && n >= 3 && seconds < kQuickProbe) places.insert(places.end(), {n / 6, n - 1 - n / 6});
  }
  const std::uint64_t calibration = grid.suite.variants[items[0]->variant].method.calibration;
  if (calibration > 0) known.captures[{items[0]->pair, calibration}].add(runner.capture_seconds());
}

// What is known of this pair, or of others of the same model.
template <class Map, class Part>
double known_mean(const Grid& grid, const Map& map, std::uint32_t pair, Part part) {
  if (const auto exact = map.find({pair, part}); exact != map.end() && exact->second.n > 0)
    return exact->second.mean();
  Measured same_model, any;
  for (const auto& [key, measured] : map) {
    if (key.second != part || measured.n == 0) continue;
    any.add(measured.mean());
    if (grid.pairs[key.first].model == grid.pairs[pair].model) same_model.add(measured.mean());
  }
  return same_model.n > 0 ? same_model.mean() : any.mean();
}

}  // namespace

double Forecast::seconds() const {
  double sum = capture_seconds;
  for (const Row& row : rows) sum += row.seconds;
  return sum;
}

Forecast forecast_run(const Grid& grid, const RunOptions& options, ThreadPool& pool,
                      const std::function<bool(std::size_t, std::size_t)>& keep_going) {
  Forecast out;
  Knowledge known = read_folder(grid, options, out);
  ItemRunner runner(grid, pool);
  std::vector<const std::vector<const GridItem*>*> groups;
  const std::set<std::uint32_t> pairs = pairs_to_probe(grid, known);
  for (const auto& [key, items] : known.left)
    if (pairs.contains(key.first) && !known.items.contains(key)) groups.push_back(&items);
  const auto place = [&](const std::vector<const GridItem*>* group) {
    const GridItem& item = *group->front();
    return std::tuple(item.pair, grid.suite.variants[item.variant].method.calibration, item.variant);
  };
  std::sort(groups.begin(), groups.end(), [&](const auto* a, const auto* b) { return place(a) < place(b); });
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!keep_going(i, groups.size())) break;
    probe_group(grid, runner, *groups[i], known);
  }

  std::set<CloudKey> clouds;
  for (std::uint32_t v = 0; v < grid.suite.variants.size(); ++v)
    out.rows.push_back({.variant = grid.suite.variants[v].label});
  for (const auto& [key, items] : known.left) {
    Forecast::Row& row = out.rows[key.second];
    row.items += items.size();
    row.seconds += static_cast<double>(items.size()) * known_mean(grid, known.items, key.first, key.second);
    const std::uint64_t calibration = grid.suite.variants[key.second].method.calibration;
    for (const GridItem* item : items)
      if (calibration > 0) clouds.insert({item->pair, item->replica, calibration});
  }
  for (const auto& [pair, replica, calibration] : clouds)
    out.capture_seconds += known_mean(grid, known.captures, pair, calibration);
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  out.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  return out;
}

}  // namespace deeptail
