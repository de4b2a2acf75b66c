#include "report/spb_experiments.h"

#include <algorithm>
#include <cmath>

#include "deeptail/loss.h"

namespace deeptail {

namespace {

// The paper's setup: truths in [1e-9, 1e-5], tolerance 0.05, no rarity premium.
constexpr double kQMin = 1e-9, kQMax = 1e-5, kEta = 0.05;

std::vector<double> log_grid(double low, double high, int points) {
  std::vector<double> out;
  for (int i = 0; i < points; ++i) out.push_back(low * std::pow(high / low, i / (points - 1.0)));
  return out;
}

class CsvTable {
 public:
  explicit CsvTable(std::string header) : text_(std::move(header) + "\n") {}
  template <class... Values>
  void row(const Values&... values) {
    std::string line;
    ((line += fmt::format("{}{}", line.empty() ? "" : ",", values)), ...);
    text_ += line + "\n";
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

// Appends y = f(x) over the grid.
template <class Function>
PlotSeries curve(std::string label, std::size_t color, bool dashed, const std::vector<double>& x,
                 Function f) {
  PlotSeries out{std::move(label), x, {}, color, dashed};
  for (const double value : x) out.y.push_back(f(value));
  return out;
}

Experiment scale_invariance() {
  constexpr double kAlpha = 2.0;
  CsvTable csv("alpha,p_over_q,q,weighted_loss");
  PlotPanel panel{"Unshifted loss, alpha = 2, epsilon = 0", {"truth q", true}, {"weighted loss", true}, {}};
  for (const double factor : {0.1, 0.2, 0.5, 2.0, 5.0, 10.0}) {
    const auto loss = [&](double q) {
      const double value = spb_weighted({.alpha = kAlpha}, q, factor * q);
      csv.row(kAlpha, factor, q, value);
      return value;
    };
    panel.series.push_back(curve(fmt::format("p = {:g} q", factor), panel.series.size(), factor < 1.0,
                                 log_grid(kQMin, kQMax, 41), loss));
  }
  return {"scale-invariance", "without a shift the loss depends on p/q alone", csv.take(), {panel}};
}

struct ShiftRule {
  std::string name;
  double epsilon;
};

// The largest shift that the corollary allows, and the heuristic. Where the corollary is silent (alpha <=
// 3/2) its first half, theorem 1, stands in.
ShiftRule corollary_rule(const EpsilonQuery& query) {
  constexpr double kStrictlyBelow = 1.0 - 1e-9;
  const EpsilonBounds bounds = epsilon_bounds(query);
  return {bounds.corollary ? "corollary" : "theorem1",
          kStrictlyBelow * bounds.corollary.value_or(bounds.scale)};
}
ShiftRule heuristic_rule(const EpsilonQuery& query) { return {"heuristic", epsilon_bounds(query).heuristic}; }

Experiment distortion() {
  const EpsilonQuery query{.alpha = 2.0, .qmin = kQMin, .mmax = 10.0, .m0 = 2.0, .eta = kEta};
  CsvTable csv("alpha,eta,rule,epsilon,m,q,fp_distortion,fn_distortion");
  const PlotAxis x{"truth q", true}, y{"relative distortion", true};
  PlotPanel fp{"Overestimates p = m q", x, y, {}, {{"eta", kEta}}};
  PlotPanel fn{"Underestimates p = q/m", x, y, {}, {{"eta", kEta}}};
  const std::vector<double> grid = log_grid(kQMin, kQMax, 41);
  for (const ShiftRule& rule : {corollary_rule(query), heuristic_rule(query)}) {
    const SpbParameters s{.alpha = query.alpha, .gamma = 0.0, .epsilon = rule.epsilon};
    std::size_t color = 0;
    for (const double m : {2.0, 5.0, 10.0}) {
      const auto over = [&](double q) { return 1.0 - spb_weighted(s, q, m * q) / i_fp(query.alpha, m); };
      const auto under = [&](double q) { return 1.0 - spb_weighted(s, q, q / m) / i_fn(query.alpha, m); };
      const std::string label = fmt::format("m = {:g}, {} epsilon", m, rule.name);
      const bool dashed = rule.name == "heuristic";
      fp.series.push_back(curve(label, color, dashed, grid, over));
      fn.series.push_back(curve(label, color++, dashed, grid, under));
      for (const double q : grid)
        csv.row(query.alpha, kEta, rule.name, rule.epsilon, m, q, over(q), under(q));
    }
  }
  return {"distortion", "the shift changes the loss by less than eta", csv.take(), {fp, fn}};
}

// The largest distortion over the box, for shifts chosen for ever larger tolerances.
Experiment distortion_by_eta() {
  const std::vector<double> grid = log_grid(kQMin, kQMax, 9), etas = log_grid(1e-3, 0.5, 41);
  CsvTable csv("alpha,eta,epsilon,worst_fp_distortion,worst_fn_distortion");
  const PlotAxis x{"tolerance eta", true}, y{"largest distortion on the box", true};
  PlotPanel fp{"Overestimates p = m q, m to 10", x, y, {}}, fn{"Underestimates p = q/m, m to 10", x, y, {}};
  for (const double alpha : {1.6, 2.5}) {
    const std::string label = fmt::format("alpha = {:g}, corollary epsilon", alpha);
    const std::size_t color = fp.series.size();
    fp.series.push_back({label, etas, {}, color});
    fn.series.push_back({label, etas, {}, color});
    for (const double eta : etas) {
      const ShiftRule rule =
          corollary_rule({.alpha = alpha, .qmin = kQMin, .mmax = 10.0, .m0 = 2.0, .eta = eta});
      const SpbParameters s{.alpha = alpha, .gamma = 0.0, .epsilon = rule.epsilon};
      double worst_fp = 0.0, worst_fn = 0.0;
      for (const double q : grid)
        for (const double m : {1.01, 1.5, 2.0, 5.0, 10.0}) {
          worst_fp = std::max(worst_fp, 1.0 - spb_weighted(s, q, m * q) / i_fp(alpha, m));
          worst_fn = std::max(worst_fn, 1.0 - spb_weighted(s, q, q / m) / i_fn(alpha, m));
        }
      csv.row(alpha, eta, rule.epsilon, worst_fp, worst_fn);
      fp.series.back().y.push_back(worst_fp);
      fn.series.back().y.push_back(worst_fn);
    }
  }
  for (PlotPanel* panel : {&fp, &fn}) panel->series.push_back({"eta itself", etas, etas, 6, true});
  return {"distortion-by-eta", "distortion stays below eta for every eta", csv.take(), {fp, fn}};
}

Experiment asymmetry() {
  CsvTable csv("alpha,rule,epsilon,m,q,fn_over_fp");
  const PlotAxis x{"error factor m", true}, y{"FN/FP loss ratio", true};
  PlotPanel by_corollary{"Corollary epsilon, q = 1e-9", x, y, {}, {{"1: symmetric", 1.0}}};
  PlotPanel by_heuristic{"Heuristic epsilon, q = 1e-9", x, y, {}, {{"1: symmetric", 1.0}}};
  const double q = kQMin;  // the rarest truth feels the shift most
  std::size_t color = 0;
  for (const double alpha : {0.5, 1.6, 2.5}) {
    const EpsilonQuery query{.alpha = alpha, .qmin = kQMin, .mmax = 1000.0, .m0 = 1.1, .eta = kEta};
    const auto add = [&](PlotPanel& panel, const ShiftRule& rule) {
      const SpbParameters s{.alpha = alpha, .gamma = 0.0, .epsilon = rule.epsilon};
      const auto ratio = [&](double m) {
        const double value = spb_pointwise(s, q, q / m) / spb_pointwise(s, q, m * q);
        csv.row(alpha, rule.name, rule.epsilon, m, q, value);
        return value;
      };
      const std::string label =
          fmt::format("alpha = {:g}, {} epsilon {:.3g}", alpha, rule.name, rule.epsilon);
      panel.series.push_back(curve(label, color, false, log_grid(query.m0, query.mmax, 61), ratio));
    };
    add(by_corollary, corollary_rule(query));
    add(by_heuristic, heuristic_rule(query));
    ++color;
  }
  return {"asymmetry",
          "alpha above 1.5 makes underestimates cost more",
          csv.take(),
          {by_corollary, by_heuristic}};
}

Experiment standard_comparison() {
  constexpr double kM = 10.0, kQ = 1e-7;
  CsvTable csv("loss,alpha,fp_loss,fn_loss,fn_over_fp");
  PlotPanel panel{"Errors by a factor 10", {"alpha", false}, {"FN/FP loss ratio", true}, {}};
  std::vector<double> alphas;
  for (int i = 0; i <= 70; ++i) alphas.push_back(0.5 + 0.05 * i);
  const EpsilonQuery query{.alpha = 2.0, .qmin = kQMin, .mmax = 1000.0, .m0 = 2.0, .eta = kEta};
  panel.series.push_back(curve("SPB", 0, false, alphas, [&](double alpha) {
    const SpbParameters s{.alpha = alpha, .gamma = 0.0, .epsilon = heuristic_rule(query).epsilon};
    const double fp = spb_weighted(s, kQ, kM * kQ), fn = spb_weighted(s, kQ, kQ / kM);
    csv.row("spb", alpha, fp, fn, fn / fp);
    return fn / fp;
  }));
  const auto flat = [&](std::string name, std::string label, std::size_t color, auto loss) {
    const double fp = loss(kQ, kM * kQ), fn = loss(kQ, kQ / kM);
    csv.row(name, "", fp, fn, fn / fp);
    panel.series.push_back(curve(std::move(label), color, true, {alphas.front(), alphas.back()},
                                 [&](double) { return fn / fp; }));
  };
  flat("itakura_saito", "Itakura-Saito", 1, itakura_saito);
  flat("log_squared", "squared error, log space", 2, log_squared_error);
  flat("squared", "squared error", 3, squared_error);
  return {"standard-losses", "alpha spans the asymmetry of the standard losses", csv.take(), {panel}};
}

Experiment scale_dependence() {
  CsvTable csv("loss,p_over_q,q,value");
  std::vector<PlotPanel> panels;
  const EpsilonQuery query{.alpha = 2.0, .qmin = kQMin, .mmax = 10.0, .m0 = 2.0, .eta = kEta};
  const SpbParameters s{.alpha = 1.5, .gamma = 0.0, .epsilon = heuristic_rule(query).epsilon};
  for (const double factor : {10.0, 0.1}) {
    PlotPanel panel{factor > 1.0 ? "Overestimates p = 10 q" : "Underestimates p = q/10",
                    {"truth q", true},
                    {"loss", true},
                    {}};
    const auto add = [&](const char* name, std::string label, auto loss) {
      const auto at = [&](double q) {
        const double value = loss(q, factor * q);
        csv.row(name, factor, q, value);
        return value;
      };
      panel.series.push_back(
          curve(std::move(label), panel.series.size(), false, log_grid(kQMin, kQMax, 41), at));
    };
    add("spb", "SPB, alpha = 1.5, heuristic epsilon",
        [&](double q, double p) { return spb_weighted(s, q, p); });
    add("itakura_saito", "Itakura-Saito", itakura_saito);
    add("log_squared", "squared error, log space", log_squared_error);
    add("squared", "squared error", squared_error);
    panels.push_back(std::move(panel));
  }
  return {"scale-dependence", "only squared error depends on the scale of q", csv.take(), panels};
}

}  // namespace

std::vector<Experiment> spb_experiments() {
  return {scale_invariance(),    distortion(),       distortion_by_eta(), asymmetry(),
          standard_comparison(), scale_dependence(), loss_properties(),   use_cases()};
}

}  // namespace deeptail
