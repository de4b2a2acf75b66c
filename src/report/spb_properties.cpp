// The paper's two tables on losses, by numbers: which loss has which property, and what the profiles weigh.
#include <cmath>

#include "deeptail/loss.h"
#include "report/spb_experiments.h"

namespace deeptail {

namespace {

struct NamedLoss {
  std::string name, label;
  double (*of)(double q, double p);
};

double spb_at_two(double q, double p) {
  return spb_weighted({.alpha = 2.0, .gamma = 0.0, .epsilon = 1e-13}, q, p);
}

const std::vector<NamedLoss>& compared_losses() {
  static const std::vector<NamedLoss> losses{{"squared", "squared error", squared_error},
                                             {"itakura_saito", "Itakura-Saito", itakura_saito},
                                             {"log_squared", "squared error, log space", log_squared_error},
                                             {"spb", "SPB, alpha = 2, epsilon = 1e-13", spb_at_two}};
  return losses;
}

// The truth is one of two, as likely as the other: what a report p costs on average.
constexpr double kRare = 1e-8, kFrequent = 1e-6, kMean = 0.5 * (kRare + kFrequent);
double expected_loss(const NamedLoss& loss, double p) {
  return 0.5 * (loss.of(kRare, p) + loss.of(kFrequent, p));
}

// The report with the lowest cost, by ternary search over log p: all four costs have one minimum there.
double best_report(const NamedLoss& loss) {
  double low = std::log(kRare), high = std::log(kFrequent);
  for (int i = 0; i < 200; ++i) {
    const double a = low + (high - low) / 3, b = high - (high - low) / 3;
    (expected_loss(loss, std::exp(a)) < expected_loss(loss, std::exp(b)) ? high : low) =
        expected_loss(loss, std::exp(a)) < expected_loss(loss, std::exp(b)) ? b : a;
  }
  return std::exp(0.5 * (low + high));
}

}  // namespace

Experiment loss_properties() {
  std::string csv = "loss,change_over_scales,at_zero,fn_over_fp,best_report_over_mean\n";
  PlotPanel panel{
      "Truth 1e-8 or 1e-6, as likely", {"report p", true}, {"expected loss over its least", true}, {}, {}};
  for (const NamedLoss& loss : compared_losses()) {
    const double best = best_report(loss);
    const double at_zero = loss.of(1e-7, 0.0);
    csv += fmt::format("{},{:.6g},{},{:.6g},{:.6g}\n", loss.name, loss.of(1e-5, 1e-4) / loss.of(1e-9, 1e-8),
                       std::isfinite(at_zero) ? fmt::format("{:.6g}", at_zero) : "undefined",
                       loss.of(1e-7, 1e-8) / loss.of(1e-7, 1e-6), best / kMean);
    PlotSeries series{loss.label, {}, {}, panel.series.size()};
    for (int i = 0; i <= 80; ++i) {
      series.x.push_back(3e-9 * std::pow(1e3, i / 80.0));
      series.y.push_back(expected_loss(loss, series.x.back()) / expected_loss(loss, best));
    }
    panel.series.push_back(std::move(series));
  }
  return {"loss-properties", "a proper loss is least at the mean of the truths, 5.05e-7", csv, {panel}};
}

Experiment use_cases() {
  std::string csv =
      "profile,alpha,gamma,fn_over_fp_m2,fn_over_fp_m10,fn_over_fp_m100,weight_of_1e-9_over_1e-5\n";
  PlotPanel panel{"Unshifted, truth 1e-7", {"p/q", true}, {"loss over that of p = 10 q", true}, {}, {}};
  for (const Profile& profile : profiles()) {
    const auto ratio = [&](double m) { return i_fn(profile.alpha, m) / i_fp(profile.alpha, m); };
    csv += fmt::format("{},{},{},{:.6g},{:.6g},{:.6g},{:.6g}\n", profile.name, profile.alpha, profile.gamma,
                       ratio(2), ratio(10), ratio(100), std::pow(10.0, 4.0 * profile.gamma));
    PlotSeries series{fmt::format("{}: alpha {:g}, gamma {:g}", profile.name, profile.alpha, profile.gamma),
                      {},
                      {},
                      panel.series.size()};
    const SpbParameters s{.alpha = profile.alpha};
    for (int i = 0; i <= 80; ++i) {
      series.x.push_back(std::pow(10.0, i / 20.0 - 2.0));
      if (i != 40)  // p = q: nothing is lost there
        series.y.push_back(spb_weighted(s, 1e-7, 1e-7 * series.x.back()) / spb_weighted(s, 1e-7, 1e-6));
      else
        series.x.pop_back();
    }
    panel.series.push_back(std::move(series));
  }
  return {"use-cases", "what the four profiles make of the same error", csv, {panel}};
}

}  // namespace deeptail
