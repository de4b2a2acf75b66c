// How the temperatures of itgis and mhis are chosen (deeptail bench tune).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/temperatures.h"
#include "deeptail/truth.h"
#include "deeptail/watch.h"

namespace [[gnu::visibility("default")]] deeptail {

// Mean over the targets of |log p - log q|, with p no lower than kTuneFloor q: a zero costs as much as an
// estimate that is 1000 times too low. Not squared, so that one zero, a matter of luck at these budgets, does
// not outweigh how well the other targets are met.
inline constexpr double kTuneFloor = 1e-3;
double tune_loss(std::span<const double> q, std::span<const double> p);

std::vector<std::string> methods_with_temperature();  // what there is to tune

struct TuneConfig {
  std::vector<std::string> models = {}, dists = {}, methods = methods_with_temperature();
  std::vector<double> grid = {0.2, 0.3, 0.45, 0.67, 1.0, 1.5, 2.24, 3.34, 5.0};
  std::size_t targets_per_pair = 16;
  double q_low = 1e-5, q_high = 1e-3;
  std::uint64_t samples = 1 << 16, seed = 1;
  // Of mhis: half as many steps as count, as by default.
  std::uint64_t burn_in() const { return samples / 64; }
  void validate() const;
};

// Ids of at most `count` tokens with q in [low, high], spread evenly over the ids.
std::vector<TokenId> targets_between(const Truth& truth, double low, double high, std::size_t count);

// Results already known, one line of JSON per cell; another search's lines (other targets, samples, seed) are
// refused. A last line without an end, left by a run that was killed, is ignored; a file that is nothing but
// such a line must begin as ours do.
using TuneResults = std::map<TuneCell, TuneResult>;
TuneResults parse_tune_results(std::string_view lines, const TuneConfig& config, std::string_view where);
std::string result_line(const TuneConfig& config, const TuneCell& cell, const TuneResult& result);

// All cells of a search, in order.
std::vector<TuneCell> tune_cells(const TuneConfig& config);
// Runs one cell on the targets of its pair. Results do not depend on threads.
struct TuneSubject {
  const Transformer& model;
  const InputLaw& law;
  const Truth& truth;
};
// Nothing when the watch ended it early.
std::optional<TuneResult> run_tune_cell(const TuneSubject& subject, const TuneConfig& config,
                                        const TuneCell& cell, ThreadPool& pool, const Watch& watch = {});

// The search: all of its cells that the file `out` does not hold yet, one thread each. Every result is
// appended as soon as it is there, so the same search continues where the last one ended, however it ended.
// out "": without a file. Models, distributions and their truths are found by name. The watch is told cells,
// at once those that are known. Returns what is known at the end.
TuneResults run_tune_search(const TuneConfig& config, const std::string& out, ThreadPool& pool,
                            const Watch& watch = {});

// The temperature of least loss of every pair and method, of those cells that are known.
std::vector<ChosenTemperature> choose(const TuneResults& results);

// The table in the file; empty where there is no file.
std::vector<ChosenTemperature> read_temperatures(const std::string& path);
// The same by the names that models and laws have for themselves, by which estimates look temperatures up: "hex", where
// "neox-digits/hex" or a path was asked for.
TuneResults under_own_names(const TuneResults& results);
// Writes the choice into it. Rows that this search says nothing about stay.
void update_temperatures(const std::string& path, const TuneResults& results);

}  // namespace deeptail
