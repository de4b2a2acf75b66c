// A run, scored: what the report's page and tables show (docs/report.md).
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/bench.h"
#include "deeptail/loss.h"

namespace [[gnu::visibility("default")]] deeptail {

// --- scores ---

// The losses of a report: the four profiles, in the order of profiles(), then the standard ones.
enum ReportLoss : std::size_t {
  kBenchmarking,
  kOversight,
  kStress,
  kAudit,
  kLogSquared,
  kItakuraSaito,
  kItakuraSaitoCalibrated,
  kSquared,
  kReportLosses
};
inline constexpr std::size_t kReportProfiles = 4;

struct MeanError {
  double mean = 0.0, error = 0.0;  // standard error over targets; not finite where the mean is not
};

// One setting of a method on one model and distribution. Everything but the losses is a count or a mean, so
// that several scores can be pooled.
struct Score {
  std::size_t model = 0, dist = 0, variant = 0;  // indices into Report
  std::size_t targets = 0, estimates = 0;
  std::size_t zeros = 0;     // estimates of 0
  std::size_t within_2 = 0;  // between half and twice the truth
  // Where the truth lies: in the 95% interval, above it (the estimate is too low) or below it.
  std::size_t inside = 0, too_low = 0, too_high = 0;
  std::array<MeanError, kReportLosses> loss = {};
  // Of the estimates that are not 0.
  double mean_log10_ratio = 0.0;     // of p/q
  double mean_square_log10 = 0.0;    // of log10(p/q) squared
  double mean_log10_width = 0.0;     // of the interval's upper over its lower end, where both are positive
  std::size_t widths = 0;            // intervals behind it
  double mean_log10_forwards = 0.0;  // cost in forward passes
  double mean_seconds = 0.0;
};

struct ReportVariant {
  std::string name, method;
  bool headline = false;  // the one setting of its method that figures show at first
};

// One model on one distribution.
struct ReportPair {
  std::size_t model = 0, dist = 0;
  std::size_t targets = 0;
  double q_min = 0.0, q_max = 0.0;
  std::array<MeanError, kReportProfiles> noise = {};  // the loss of exact answers: the truth is a count
};

struct Report {
  RunHeader header = {};
  std::size_t items = 0, torn = 0;
  std::size_t unscored = 0;  // estimates whose truth is a count of none or of all
  std::array<SpbParameters, kReportProfiles> spb = {};
  std::array<std::string, kReportProfiles> epsilon_rule = {};
  std::vector<std::string> models = {}, dists = {};  // in the header's order, those with estimates
  std::vector<ReportVariant> variants = {};
  std::vector<ReportPair> pairs = {};
  std::vector<Score> scores = {};  // sorted by model, dist, variant
};
// The shift of each profile is chosen for the rarest truth of the whole run, so that losses compare across
// pairs. Throws InputError when the run has no estimate that can be scored.
Report make_report(const Run& run, ThreadPool& pool);

// Losses of several scores: the mean of their means, with its error.
MeanError average(std::span<const MeanError> cells);

// Does the truth lie in the interval, above it (+1) or below it (-1)? The truth is a count with noise of its
// own, so the interval is widened by it: half-widths add as squares on the log scale.
int truth_against_interval(const RunItem& item);

// --- whitening ---

// Marginal variances of held-out activations, largest first, before and after whitening. [d_model]
struct WhiteningProfile {
  std::string model = {}, dist = {};
  std::vector<double> before = {}, after = {};
};
// Whitens by the first three quarters of the activations and measures the rest.
WhiteningProfile whitening_profile(const Activations& activations, ThreadPool& pool);

// --- what is written ---

struct ReportExtras {
  std::vector<WhiteningProfile> whitening = {};
  std::string no_whitening = {};  // why there is none
};
// The page's data: one JSON document.
std::string report_json(const Report& report, const Run& run, const ReportExtras& extras);

// The page with its data in it. `page` is the template with the marker of kPageData; the data is deflated.
inline constexpr std::string_view kPageData = "@DEEPTAIL_DATA@";
std::string render_page(std::string_view page, std::string_view json);

struct TableFile {
  std::string name, text;
};
// CSV, Markdown and LaTeX (booktabs) of the losses under each profile and of all settings.
std::vector<TableFile> report_tables(const Report& report);

}  // namespace deeptail
