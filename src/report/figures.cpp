// The paper's figures of a run, as SVG (docs/paper.md says which is which).
#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>

#include "core/csv.h"
#include "report/lookup.h"
#include "report/score.h"
#include "report/svg_plot.h"

namespace deeptail {

namespace {

double place(std::size_t i) { return static_cast<double>(i); }

// A small step to the side for each of n methods, so that their marks do not cover each other.
double beside(std::size_t i, std::size_t n) { return 0.6 * ((place(i) + 0.5) / place(n) - 0.5); }

void add_point(PlotSeries& series, double x, const MeanError& loss) {
  series.x.push_back(x);
  series.y.push_back(loss.mean);
  series.low.push_back(loss.mean - loss.error);
  series.high.push_back(loss.mean + loss.error);
}

// Methods whose loss is infinite on some model: a log axis has no place for them.
std::string infinite_note(const Report& r, std::size_t loss) {
  std::string out;
  for (const std::size_t v : headline_variants(r)) {
    std::size_t infinite = 0;
    for (std::size_t m = 0; m < r.models.size(); ++m) infinite += std::isinf(model_loss(r, m, v, loss).mean);
    if (infinite > 0)
      out += fmt::format("{}{}{}", out.empty() ? "infinite: " : ", ", r.variants[v].name,
                         infinite < r.models.size() ? " (on some)" : "");
  }
  return out;
}

// One loss over the models: lines of means with their errors; faint points of single distributions.
PlotPanel by_model(const Report& r, std::size_t loss, bool singles) {
  PlotPanel panel{loss_title(r, loss),   {"", false, r.models}, {"mean loss", true}, {}, {},
                  infinite_note(r, loss)};
  const std::vector<std::size_t> shown = headline_variants(r);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    PlotSeries line{r.variants[shown[i]].name, {}, {}, i}, points = line, single = line;
    points.mark = single.mark = PlotMark::points;
    points.in_legend = single.in_legend = false;
    single.size = 1.6;
    for (std::size_t m = 0; m < r.models.size(); ++m) {
      const double x = place(m) + beside(i, shown.size());
      add_point(points, x, model_loss(r, m, shown[i], loss));
      for (std::size_t d = 0; singles && d < r.dists.size(); ++d)
        if (const Score* score = find_score(r, m, d, shown[i])) {
          single.x.push_back(x);
          single.y.push_back(score->loss[loss].mean);
        }
    }
    line.x = points.x, line.y = points.y;
    panel.series.push_back(std::move(line));
    panel.series.push_back(std::move(points));
    if (singles) panel.series.push_back(std::move(single));
  }
  return panel;
}

// One loss over the distributions: means over the models, with the standard error across them, as the paper's.
PlotPanel by_dist(const Report& r, std::size_t loss) {
  PlotPanel panel{loss_title(r, loss), {"", false, r.dists}, {"mean loss", true}, {}};
  const std::vector<std::size_t> shown = headline_variants(r);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    PlotSeries series{r.variants[shown[i]].name, {}, {}, i, false, PlotMark::points};
    for (std::size_t d = 0; d < r.dists.size(); ++d) {
      std::vector<double> means;
      for (std::size_t m = 0; m < r.models.size(); ++m)
        if (const Score* score = find_score(r, m, d, shown[i])) means.push_back(score->loss[loss].mean);
      MeanError over{0.0, 0.0};
      for (const double mean : means) over.mean += mean / place(means.size());
      for (const double mean : means) over.error += (mean - over.mean) * (mean - over.mean);
      over.error =
          std::sqrt(over.error / place(std::max<std::size_t>(1, means.size() - 1)) / place(means.size()));
      if (!means.empty()) add_point(series, place(d) + beside(i, shown.size()), over);
    }
    panel.series.push_back(std::move(series));
  }
  return panel;
}

// Estimates over truths on one pair; zeros as crosses below all of them.
// low, high: of all truths of the model, so that its panels have one axis; bottom: where zeros lie.
struct TruthRange {
  double low = 1.0, high = 0.0, bottom = 0.0;
};
TruthRange truth_range(const Report& r, std::size_t model) {
  TruthRange out;
  for (const ReportPair& pair : r.pairs)
    if (pair.model == model && pair.scored > 0)
      out.low = std::min(out.low, pair.q_min), out.high = std::max(out.high, pair.q_max);
  out.bottom = std::pow(10.0, std::floor(std::log10(out.low)) - 3.0);
  return out;
}

PlotPanel scatter(const Report& r, const Run& run, std::size_t model, std::size_t dist) {
  PlotPanel panel{r.dists[dist], {"truth", true}, {"estimate", true}, {}};
  const std::vector<std::size_t> shown = headline_variants(r);
  const auto [low, high, bottom] = truth_range(r, model);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    PlotSeries points{r.variants[shown[i]].name, {}, {}, i, false, PlotMark::points}, zeros = points;
    zeros.mark = PlotMark::crosses;
    zeros.in_legend = false;
    for (const RunItem& item : run.items) {
      if (item.model != r.models[model] || item.dist != r.dists[dist] ||
          item.variant != r.variants[shown[i]].name || !scorable(item))
        continue;
      PlotSeries& series = std::isinf(item.log_p) ? zeros : points;
      series.x.push_back(item.q());
      series.y.push_back(std::isinf(item.log_p) ? bottom : std::max(bottom, std::exp(item.log_p)));
    }
    panel.series.push_back(std::move(points));
    panel.series.push_back(std::move(zeros));
  }
  panel.series.push_back({"exact", {low, high}, {low, high}, 6, true});
  return panel;
}

PlotPanel whitening_panel(const ReportExtras& extras, const std::string& model) {
  PlotPanel panel{model, {"direction, by variance"}, {"marginal variance", true}, {}};
  for (const bool after : {false, true}) {
    std::vector<const std::vector<double>*> curves;
    for (const WhiteningProfile& profile : extras.whitening)
      if (profile.model == model) curves.push_back(after ? &profile.after : &profile.before);
    PlotSeries line{after ? "after whitening" : "before", {}, {}, after ? 0u : 1u}, band = line;
    band.mark = PlotMark::band;
    band.in_legend = false;
    for (std::size_t j = 0; !curves.empty() && j < curves.front()->size(); ++j) {
      std::vector<double> at;
      for (const auto* curve : curves) at.push_back((*curve)[j]);
      std::sort(at.begin(), at.end());
      const auto quantile = [&](double f) {
        const double i = f * place(at.size() - 1);
        const auto k = static_cast<std::size_t>(i);
        return at[k] + (i - place(k)) * (at[std::min(k + 1, at.size() - 1)] - at[k]);
      };
      line.x.push_back(place(j + 1));
      line.y.push_back(quantile(0.5));
      band.low.push_back(quantile(0.25));
      band.high.push_back(quantile(0.75));
    }
    band.x = line.x;
    panel.series.push_back(std::move(band));
    panel.series.push_back(std::move(line));
  }
  return panel;
}

// Largest, median and smallest variance of each pair.
std::string whitening_csv(const ReportExtras& extras) {
  std::string out =
      "model,dist,before_largest,before_median,before_smallest,after_largest,after_median,after_smallest\n";
  for (const WhiteningProfile& profile : extras.whitening) {
    out += fmt::format("{},{}", csv_field(profile.model), csv_field(profile.dist));
    for (const std::vector<double>* sorted : {&profile.before, &profile.after})
      out += fmt::format(",{:.4g},{:.4g},{:.4g}", sorted->front(), (*sorted)[sorted->size() / 2],
                         sorted->back());
    out += "\n";
  }
  return out;
}

// All settings of the methods that have several, as bars: the mean over the distributions, +- 1.28 standard
// errors as the paper's.
std::optional<BarPlot> settings_bars(const Report& r, std::size_t profile) {
  constexpr double kErrors = 1.28;
  std::map<std::string, std::size_t> settings;
  for (const ReportVariant& v : r.variants) ++settings[v.method];
  BarPlot plot{fmt::format("{}, +- 1.28 standard errors", loss_title(r, profile)), {}, {}, {}};
  std::vector<std::size_t> shown;
  std::map<std::string, std::size_t> colors;  // by the first setting, of ga-amls the kernel
  for (std::size_t v = 0; v < r.variants.size(); ++v) {
    if (settings[r.variants[v].method] < 2) continue;
    const std::string& name = r.variants[v].name;
    const std::size_t first = std::min(name.find('/'), name.size() - 1);
    shown.push_back(v);
    plot.names.push_back(name);
    plot.colors.push_back(
        colors.try_emplace(name.substr(0, name.find('/', first + 1)), colors.size()).first->second);
  }
  if (shown.empty()) return std::nullopt;
  for (std::size_t m = 0; m < r.models.size(); ++m) {
    BarPanel panel{r.models[m], {}, {}, {}};
    for (const std::size_t v : shown) {
      const MeanError loss = model_loss(r, m, v, profile);
      panel.value.push_back(loss.mean);
      panel.low.push_back(loss.mean - kErrors * loss.error);
      panel.high.push_back(loss.mean + kErrors * loss.error);
    }
    plot.panels.push_back(std::move(panel));
  }
  return plot;
}

// A model's name as part of a file's: what is not a letter, a digit or one of .-_ becomes _.
std::string file_word(const std::string& name) {
  std::string out = name;
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
  return out;
}

}  // namespace

std::string loss_title(const Report& r, std::size_t loss) {
  if (loss < kReportProfiles) return fmt::format("SPB ({:g}, {:g})", r.spb[loss].alpha, r.spb[loss].gamma);
  return loss == kLogSquared ? "squared error, log space"
         : loss == kSquared  ? "squared error"
                             : "Itakura-Saito";
}

MeanError model_loss(const Report& r, std::size_t model, std::size_t variant, std::size_t loss) {
  std::vector<MeanError> cells;
  for (const ReportPair& pair : r.pairs) {
    if (pair.model != model || pair.scored == 0) continue;
    const Score* score = find_score(r, model, pair.dist, variant);
    cells.push_back(score ? score->loss[loss] : MeanError{NAN, NAN});
  }
  return cells.empty() ? MeanError{NAN, NAN} : average(cells);
}

std::vector<TableFile> report_figures(const Report& r, const Run& run, const ReportExtras& extras) {
  std::vector<TableFile> out;
  if (r.scored() > 0) {
    std::vector<PlotPanel> metrics, models, dists;
    for (const std::size_t loss : {std::size_t{kLogSquared}, std::size_t{kBenchmarking},
                                   std::size_t{kOversight}, std::size_t{kItakuraSaito}})
      metrics.push_back(by_model(r, loss, false));
    for (std::size_t k = 0; k < kReportProfiles; ++k) {
      models.push_back(by_model(r, k, true));
      dists.push_back(by_dist(r, k));
    }
    out.push_back({"metrics.svg", render_svg(metrics, {.columns = 4, .width = 210})});
    out.push_back({"loss-by-model.svg", render_svg(models, {.columns = 4, .width = 210})});
    out.push_back({"loss-by-dist.svg", render_svg(dists, {.columns = 2, .width = 420, .height = 200})});
    for (std::size_t m = 0; m < r.models.size(); ++m) {
      std::vector<PlotPanel> panels;
      for (const ReportPair& pair : r.pairs)
        if (pair.model == m && pair.scored > 0) panels.push_back(scatter(r, run, m, pair.dist));
      if (!panels.empty())
        out.push_back({fmt::format("scatter-{}.svg", file_word(r.models[m])),
                       render_svg(panels, {.columns = 4, .width = 190, .height = 190})});
    }
    for (std::size_t k = 0; k < kReportProfiles; ++k)
      if (const auto bars = settings_bars(r, k))
        out.push_back({fmt::format("settings-{}.svg", profiles()[k].name), render_bars(*bars)});
  }
  std::vector<PlotPanel> whitening;
  for (const std::string& model : r.models)
    if (!extras.whitening.empty()) whitening.push_back(whitening_panel(extras, model));
  if (whitening.empty()) return out;
  out.push_back({"whitening.svg", render_svg(whitening, {.columns = 3, .width = 240})});
  out.push_back({"whitening.csv", whitening_csv(extras)});
  return out;
}

}  // namespace deeptail
