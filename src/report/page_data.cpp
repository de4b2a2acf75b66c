// The page's data as JSON. Probabilities are base-10 logs; what is not finite is null, an infinite loss
// "inf".
#include <cmath>
#include <map>

#include "core/json.h"
#include "deeptail/report.h"
#include "report/score.h"
#include "report/spb_experiments.h"

namespace deeptail {

namespace {

using PageJson = OrderedJson;

constexpr double kPerLn10 = 0.43429448190325182765;

// Few digits: the page shows three, and holds tens of thousands of these.
PageJson rounded(double value, int digits) {
  if (!std::isfinite(value)) return nullptr;
  const double scale = std::pow(10.0, digits);
  return std::round(value * scale) / scale;
}
PageJson significant(double value, int digits = 6) {
  if (std::isinf(value) && value > 0) return "inf";
  if (!std::isfinite(value)) return nullptr;
  if (value == 0.0) return 0;
  return rounded(value, digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value)))));
}
PageJson log10_of(double log_p) { return rounded(log_p * kPerLn10, 4); }
PageJson json_of(const MeanError& m) { return {significant(m.mean), significant(m.error, 3)}; }

PageJson meta_json(const Report& r) {
  return {{"suite", r.header.suite_name},
          {"created", r.header.created},
          {"device", r.header.device},
          {"version", r.header.version},
          {"items", r.items},
          {"expected", r.header.items},
          {"torn", r.torn},
          {"unscored", r.unscored},
          {"suite_text", r.header.suite_text}};
}

PageJson models_json(const Report& r) {
  PageJson out = PageJson::array();
  for (const std::string& name : r.models) {
    PageJson layers = nullptr;
    for (const auto& model : r.header.models)
      if (model.name == name) layers = model.n_layers;
    out.push_back({{"name", name}, {"layers", layers}});
  }
  return out;
}

PageJson profiles_json(const Report& r) {
  PageJson out = PageJson::array();
  for (std::size_t k = 0; k < kReportProfiles; ++k)
    out.push_back({{"name", profiles()[k].name},
                   {"emphasis", profiles()[k].emphasis},
                   {"alpha", r.spb[k].alpha},
                   {"gamma", r.spb[k].gamma},
                   {"epsilon", significant(r.spb[k].epsilon, 4)},
                   {"rule", r.epsilon_rule[k]}});
  return out;
}

PageJson pairs_json(const Report& r) {
  PageJson out = PageJson::array();
  for (const ReportPair& pair : r.pairs) {
    PageJson noise = PageJson::array();
    for (const MeanError& m : pair.noise) noise.push_back(json_of(m));
    out.push_back({{"m", pair.model},
                   {"d", pair.dist},
                   {"targets", pair.targets},
                   {"q", {significant(pair.q_min, 3), significant(pair.q_max, 3)}},
                   {"noise", noise}});
  }
  return out;
}

PageJson scores_json(const Report& r) {
  PageJson out = PageJson::array();
  for (const Score& s : r.scores) {
    PageJson loss = PageJson::array();
    for (const MeanError& m : s.loss) loss.push_back(json_of(m));
    out.push_back({{"m", s.model},
                   {"d", s.dist},
                   {"v", s.variant},
                   {"targets", s.targets},
                   {"n", s.estimates},
                   {"zeros", s.zeros},
                   {"within2", s.within_2},
                   {"inside", s.inside},
                   {"low", s.too_low},
                   {"high", s.too_high},
                   {"bias", significant(s.mean_log10_ratio)},
                   {"square", significant(s.mean_square_log10)},
                   {"width", significant(s.mean_log10_width)},
                   {"widths", s.widths},
                   {"cost", significant(s.mean_log10_forwards)},
                   {"seconds", significant(s.mean_seconds, 3)},
                   {"loss", loss}});
  }
  return out;
}

std::size_t number_of(std::map<std::string, std::size_t>& numbers, PageJson& list, const std::string& text) {
  const auto [entry, fresh] = numbers.try_emplace(text, numbers.size());
  if (fresh) list.push_back(text);
  return entry->second;
}

// Columns rather than rows: shorter, and they deflate well.
void add_items(const Report& r, const Run& run, PageJson& out) {
  std::map<std::string, std::size_t> models, dists, variants, statuses, warnings;
  for (const std::string& name : r.models) models.try_emplace(name, models.size());
  for (const std::string& name : r.dists) dists.try_emplace(name, dists.size());
  for (const ReportVariant& v : r.variants) variants.try_emplace(v.name, variants.size());
  PageJson targets = PageJson::array(), columns, status_names = PageJson::array(),
           warning_texts = PageJson::array();
  const RunItem* last = nullptr;
  for (const RunItem& item : run.items) {
    if (!scorable(item)) continue;
    if (!last || last->model != item.model || last->dist != item.dist || last->target != item.target)
      targets.push_back({models[item.model], dists[item.dist], item.target, item.target_text,
                         item.truth_count, item.truth_samples});
    last = &item;
    columns["t"].push_back(targets.size() - 1);
    columns["v"].push_back(variants[item.variant]);
    columns["r"].push_back(item.replica);
    columns["p"].push_back(log10_of(item.log_p));
    columns["lo"].push_back(log10_of(item.log_low));
    columns["hi"].push_back(log10_of(item.log_high));
    columns["in"].push_back(truth_against_interval(item));
    columns["c"].push_back(significant(item.cost.forward_equivalents > 0.0
                                           ? item.cost.forward_equivalents
                                           : static_cast<double>(item.cost.forward),
                                       3));
    columns["s"].push_back(significant(item.cost.seconds, 3));
    columns["st"].push_back(number_of(statuses, status_names, item.status));
    PageJson mine = PageJson::array();
    for (const std::string& warning : item.warnings)
      mine.push_back(number_of(warnings, warning_texts, warning));
    columns["w"].push_back(mine);
  }
  out["targets"] = targets;
  out["items"] = columns;
  out["statuses"] = status_names;
  out["warnings"] = warning_texts;
}

PageJson experiments_json() {
  PageJson out = PageJson::array();
  for (const Experiment& experiment : spb_experiments()) {
    PageJson panels = PageJson::array();
    for (const PlotPanel& panel : experiment.panels) {
      PageJson series = PageJson::array(), guides = PageJson::array();
      for (const PlotSeries& s : panel.series) {
        PageJson x = PageJson::array(), y = PageJson::array();
        for (const double value : s.x) x.push_back(significant(value, 4));
        for (const double value : s.y) y.push_back(significant(value, 4));
        series.push_back({{"label", s.label}, {"x", x}, {"y", y}, {"color", s.color}, {"dashed", s.dashed}});
      }
      for (const PlotGuide& g : panel.guides) guides.push_back({{"label", g.label}, {"y", g.y}});
      panels.push_back({{"title", panel.title},
                        {"x", {{"label", panel.x.label}, {"log", panel.x.log}}},
                        {"y", {{"label", panel.y.label}, {"log", panel.y.log}}},
                        {"series", series},
                        {"guides", guides}});
    }
    out.push_back({{"name", experiment.name}, {"what", experiment.what}, {"panels", panels}});
  }
  return out;
}

PageJson whitening_json(const ReportExtras& extras) {
  PageJson profiles = PageJson::array();
  for (const WhiteningProfile& w : extras.whitening) {
    PageJson before = PageJson::array(), after = PageJson::array();
    for (const double v : w.before) before.push_back(significant(v, 4));
    for (const double v : w.after) after.push_back(significant(v, 4));
    profiles.push_back({{"model", w.model}, {"dist", w.dist}, {"before", before}, {"after", after}});
  }
  return {{"profiles", profiles}, {"why_none", extras.no_whitening}};
}

}  // namespace

std::string report_json(const Report& report, const Run& run, const ReportExtras& extras) {
  PageJson variants = PageJson::array();
  for (const ReportVariant& v : report.variants)
    variants.push_back({{"name", v.name}, {"method", v.method}, {"headline", v.headline}});
  PageJson out = {{"meta", meta_json(report)},
                  {"models", models_json(report)},
                  {"dists", report.dists},
                  {"variants", variants},
                  {"profiles", profiles_json(report)},
                  {"pairs", pairs_json(report)},
                  {"scores", scores_json(report)},
                  {"experiments", experiments_json()},
                  {"whitening", whitening_json(extras)}};
  add_items(report, run, out);
  return json_text(out);
}

}  // namespace deeptail
