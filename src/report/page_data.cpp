// The page's data as JSON. Probabilities are base-10 logs; what is not finite is null, an infinite loss
// "inf".
#include <cmath>

#include "core/json.h"
#include "deeptail/method_rows.h"
#include "deeptail/report.h"
#include "report/page_json.h"
#include "report/score.h"
#include "report/spb_experiments.h"

namespace deeptail {

namespace {

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
          {"without_truth", r.without_truth},
          {"scored", r.scored()},
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
                   {"scored", pair.scored},
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
                   {"scored", s.scored},
                   {"scored_targets", s.scored_targets},
                   {"ratios", s.ratios},
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

// [model, dist, a, b, targets, then mean, low and high end under each profile]
PageJson differences_json(std::span<const Difference> differences) {
  PageJson out = PageJson::array();
  for (const Difference& d : differences) {
    PageJson row = {d.model, d.dist, d.a, d.b, d.targets};
    for (const Difference::Change& change : d.loss)
      for (const double value : {change.mean, change.low, change.high}) row.push_back(significant(value, 3));
    out.push_back(row);
  }
  return out;
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

// What one run and either of two are shown from.
PageJson scored_json(const Report& report, const Run& run) {
  PageJson variants = PageJson::array();
  for (const ReportVariant& v : report.variants) {
    const MethodRow* row = find_method_row(v.method);
    variants.push_back({{"name", v.name},
                        {"method", v.method},
                        {"headline", v.headline},
                        {"colour", row == nullptr ? PageJson(nullptr) : PageJson(row->colour)}});
  }
  PageJson out = {
      {"meta", meta_json(report)},    {"models", models_json(report)},     {"dists", report.dists},
      {"variants", variants},         {"profiles", profiles_json(report)}, {"pairs", pairs_json(report)},
      {"scores", scores_json(report)}};
  add_page_items(report, run, out);
  return out;
}

}  // namespace

std::string report_json(const Report& report, const Run& run, const ReportExtras& extras) {
  PageJson out = scored_json(report, run);
  out["differences"] = differences_json(report.differences);
  out["experiments"] = experiments_json();
  out["whitening"] = whitening_json(extras);
  add_page_details(report, run, extras.details, out);
  return json_text(out);
}

std::string comparison_json(const CommonItems& common, const Report& a, const Report& b,
                            std::span<const Difference> differences) {
  return json_text(PageJson{{"a", scored_json(a, common.a)},
                            {"b", scored_json(b, common.b)},
                            {"differences", differences_json(differences)},
                            {"only_a", common.only_a},
                            {"only_b", common.only_b}});
}

}  // namespace deeptail
