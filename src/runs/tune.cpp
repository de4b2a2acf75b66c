// Choosing temperatures on targets that are frequent enough for the truth to be known well.
#include <algorithm>
#include <cmath>

#include "core/json.h"
#include "core/stopwatch.h"
#include "deeptail/itgis.h"
#include "deeptail/methods.h"
#include "deeptail/tune.h"
#include "estimators/read_tune.h"

namespace deeptail {

std::vector<std::string> methods_with_temperature() {
  std::vector<std::string> names;
  for (const MethodRow* row : method_rows())
    if (row->setting("temperature") != nullptr) names.emplace_back(row->name);
  return names;
}

namespace {

Method method_of_cell(const TuneConfig& config, const TuneCell& cell) {
  std::vector<Setting> settings = {{"budget", fmt::format("{}", config.samples), "samples"},
                                   {"temperature", fmt::format("{}", cell.temperature), "temperature"}};
  if (method_row(cell.method).setting("burn_in") != nullptr)
    settings.push_back({"burn_in", fmt::format("{}", config.burn_in()), "burn-in"});
  return make_method(cell.method, settings);
}

}  // namespace

void TuneConfig::validate() const {
  for (const std::string& method : methods)
    if (const std::vector<std::string> with = methods_with_temperature();
        std::find(with.begin(), with.end(), method) == with.end())
      throw InputError("method {}: only {} have a temperature", printable(method), fmt::join(with, " and "));
  if (models.empty() || dists.empty() || methods.empty() || grid.empty())
    throw InputError("nothing to tune: expected at least one model, distribution, method and temperature");
  if (targets_per_pair == 0) throw InputError("0 targets per pair: expected at least one");
  for (const double t : grid)
    if (!(t > 0.0 && std::isfinite(t))) throw InputError("temperature {}: expected a positive number", t);
  ItgisConfig{.samples = samples}.validate();
}

double tune_loss(std::span<const double> q, std::span<const double> p) {
  double sum = 0.0;
  for (std::size_t i = 0; i < q.size(); ++i) sum += std::abs(std::log(std::max(p[i] / q[i], kTuneFloor)));
  return sum / static_cast<double>(q.size());
}

std::vector<TokenId> targets_between(const Truth& truth, double low, double high, std::size_t count) {
  std::vector<TokenId> inside;
  for (const auto& [token, seen] : truth.counts)
    if (const double q = truth.q(token); q >= low && q <= high) inside.push_back(token);
  if (inside.size() <= count) return inside;
  std::vector<TokenId> out;
  for (std::size_t k = 0; k < count; ++k) out.push_back(inside[k * inside.size() / count]);
  return out;
}

std::vector<TuneCell> tune_cells(const TuneConfig& config) {
  std::vector<TuneCell> cells;
  for (const std::string& model : config.models)
    for (const std::string& dist : config.dists)
      for (const std::string& method : config.methods)
        for (const double temperature : config.grid) cells.push_back({model, dist, method, temperature});
  return cells;
}

std::optional<TuneResult> run_tune_cell(const TuneSubject& subject, const TuneConfig& config,
                                        const TuneCell& cell, ThreadPool& pool, const Watch& watch) {
  const Stopwatch stopwatch;
  const auto targets = targets_between(subject.truth, config.q_low, config.q_high, config.targets_per_pair);
  if (targets.empty())
    throw InputError("{} on {}: the truth has no token with q from {} to {}", cell.model, cell.dist,
                     config.q_low, config.q_high);
  std::vector<double> q, p;
  bool stopped = false;
  const Watch asked = [&](const Progress& now) {
    const double share = (static_cast<double>(q.size()) + now.share) / static_cast<double>(targets.size());
    return !(stopped = !goes_on(watch, {.share = share}));
  };
  const Method method = method_of_cell(config, cell);
  for (const TokenId id : targets) {
    const NextToken event(Target({id}, subject.model.head()));
    const Estimate e = run_method(method, {subject.model, subject.law, event}, config.seed, pool, asked);
    if (stopped) return std::nullopt;
    q.push_back(subject.truth.q(id));
    p.push_back(std::exp(e.log_p));
  }
  return TuneResult{.loss = tune_loss(q, p),
                    .targets = q.size(),
                    .zeros = static_cast<std::size_t>(std::count(p.begin(), p.end(), 0.0)),
                    .seconds = stopwatch.seconds()};
}

namespace {

// What two searches must share for their results to be comparable.
Json search_json(const TuneConfig& c) {
  return {{"targets_per_pair", c.targets_per_pair},
          {"q", {c.q_low, c.q_high}},
          {"samples", c.samples},
          {"seed", c.seed},
          {"loss", "mean |ln p/q|"}};
}

}  // namespace

std::string result_line(const TuneConfig& config, const TuneCell& cell, const TuneResult& result) {
  const Json line = {{"model", cell.model},          {"dist", cell.dist},
                     {"method", cell.method},        {"temperature", cell.temperature},
                     {"loss", result.loss},          {"targets", result.targets},
                     {"zeros", result.zeros},        {"seconds", result.seconds},
                     {"search", search_json(config)}};
  return json_text(line) + "\n";
}

// How every line of result_line begins.
constexpr std::string_view kLineStart = R"({"dist":")";

TuneResults parse_tune_results(std::string_view lines, const TuneConfig& config, std::string_view where) {
  TuneResults out;
  for (std::size_t number = 1; !lines.empty(); ++number) {
    const std::size_t end = lines.find('\n');
    if (end == std::string_view::npos) {
      if (number == 1 && lines.substr(0, kLineStart.size()) != kLineStart.substr(0, lines.size()))
        throw InputError("{}: holds no search for temperatures; choose another file", where)
            .with_hint(Hint::kOut);
      break;
    }
    const std::string place = fmt::format("{} line {}", where, number);
    const Json document = parse_json(lines.substr(0, end), place);
    lines.remove_prefix(end + 1);
    const JsonNode line(document, place);
    if (line.at("search").value() != search_json(config))
      throw InputError("{}: made by another search ({}); choose another file, or the same settings", place,
                       line.at("search").found())
          .with_hint(Hint::kOut);
    TuneResult& result = out[read_tune_cell(line)] = read_tune_result(line);
    result.seconds = line.at("seconds").number();
  }
  return out;
}

std::vector<ChosenTemperature> choose(const TuneResults& results) {
  std::vector<ChosenTemperature> out;
  for (const auto& [cell, result] :
       results) {  // sorted, so temperatures of one pair and method are neighbours
    const bool same = !out.empty() && out.back().cell.model == cell.model &&
                      out.back().cell.dist == cell.dist && out.back().cell.method == cell.method;
    if (!same)
      out.push_back({cell, result});
    else if (result.loss < out.back().result.loss)
      out.back() = {cell, result};
  }
  return out;
}

}  // namespace deeptail
