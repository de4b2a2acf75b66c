// A run, scored: what the report's page and tables show (docs/report.md).
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/loss.h"
#include "deeptail/runs.h"
#include "deeptail/watch.h"

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
// that several scores can be pooled. What needs a truth is of the scored estimates alone.
struct Score {
  std::size_t model = 0, dist = 0, variant = 0;  // indices into Report
  std::size_t targets = 0, estimates = 0;        // with and without truth
  std::size_t scored_targets = 0, scored = 0;    // those with a truth
  std::size_t zeros = 0;                         // estimates of 0
  std::size_t within_2 = 0;                      // between half and twice the truth
  // Where the truth lies: in the 95% interval, above it (the estimate is too low) or below it.
  std::size_t inside = 0, too_low = 0, too_high = 0;
  std::array<MeanError, kReportLosses> loss = {};  // NaN where nothing is scored
  std::size_t ratios = 0;                          // scored estimates that are not 0; behind the next two:
  double mean_log10_ratio = 0.0;                   // of p/q
  double mean_square_log10 = 0.0;                  // of log10(p/q) squared
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
  std::size_t targets = 0, scored = 0;                // all, and those with a truth
  double q_min = 0.0, q_max = 0.0;                    // not finite where none is scored
  std::array<MeanError, kReportProfiles> noise = {};  // the loss of exact answers: the truth is a count
};

// The loss of setting a minus that of setting b on one pair, over the targets that both have, with the 95%
// interval of a paired bootstrap over targets.
struct Difference {
  std::size_t model = 0, dist = 0, a = 0, b = 0;  // indices into Report
  std::size_t targets = 0;                        // at least 2
  struct Change {
    double mean = 0.0, low = 0.0, high = 0.0;
  };
  std::array<Change, kReportProfiles> loss = {};
};

// Truths below this are called rare: the middle of the paper's band of 1e-9 to 1e-5, in logs.
inline constexpr double kRareTruth = 1e-7;

// log10 of estimate over truth, of the scored estimates of one setting on one model, zeros apart.
struct ErrorSummary {
  std::size_t model = 0, variant = 0;  // indices into Report
  std::size_t targets = 0, estimates = 0, zeros = 0;
  std::size_t rare = 0, rare_zeros = 0;  // estimates of rare truths
  std::size_t too_high = 0, within_2 = 0;
  // NaN where there is no estimate but zeros; deviation: of these values, not of what they are a sample of.
  double median = NAN, median_rare = NAN, median_common = NAN;
  double mean = NAN, deviation = NAN, lowest = NAN, highest = NAN;
};

// Losses without a shift, which are infinite at zero: means over the targets of one model that all `variants`
// have estimated, none of them as zero. Methods whose estimates are mostly zeros are not among them.
struct AnsweredLosses {
  std::size_t model = 0;                                       // index into Report
  std::size_t targets = 0, of_targets = 0;                     // that are kept, and that some have estimated
  std::vector<std::size_t> variants = {};                      // one of each method
  std::vector<std::array<double, kReportProfiles>> loss = {};  // [variants], NaN where no target is kept
};

struct Report {
  RunHeader header = {};
  std::size_t items = 0, torn = 0;
  std::size_t without_truth = 0;  // estimates whose truth is not known
  std::size_t unscored = 0;       // estimates whose truth is a count of none or of all
  std::size_t scored() const { return items - without_truth - unscored; }
  std::array<SpbParameters, kReportProfiles> spb = {};
  std::array<std::string, kReportProfiles> epsilon_rule = {};
  std::vector<std::string> models = {}, dists = {};  // in the header's order, those with estimates
  std::vector<ReportVariant> variants = {};
  std::vector<ReportPair> pairs = {};
  std::vector<Score> scores = {};            // sorted by model, dist, variant
  std::vector<Difference> differences = {};  // sorted by model, dist, a, b; a < b
  std::vector<ErrorSummary> errors = {};     // sorted by model, variant
  std::vector<AnsweredLosses> answered = {};
};
// The shift of each profile is chosen for the rarest truth of the whole run, so that losses compare across
// pairs. Throws InputError when the run has no estimates.
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

// --- two runs ---

// The items that two runs have in common, in the same order and with the same truths: of two counts, the
// larger.
struct CommonItems {
  Run a = {}, b = {};
  std::size_t only_a = 0, only_b = 0;  // items of one run alone
};
// Throws InputError where the runs name the same model or distribution but mean another, or share no item.
CommonItems common_items(Run a, Run b);
// Loss of run a minus that of run b, for each setting on each pair. Both reports are of the same items.
std::vector<Difference> run_differences(const CommonItems& common, const Report& a, ThreadPool& pool);

// --- what is written ---

// What a data line of the run folder tells about its estimate beyond RunItem.
struct ItemDetail {
  std::vector<std::string> triggers = {};  // the first few, as text
  std::size_t n_triggers = 0;
  std::vector<double> survive_fraction = {}, acceptance = {};  // of the first levels
  std::size_t n_levels = 0;
  std::string command = {};  // that repeats it; "" where the suite's settings are not known
};
// By item id. Lines that hold something else than an estimate's JSON give what can be read of them.
using ItemDetails = std::map<std::string, ItemDetail>;
ItemDetails read_item_details(const std::string& folder);

struct ReportExtras {
  std::vector<WhiteningProfile> whitening = {};
  std::string no_whitening = {};  // why there is none
  ItemDetails details = {};
};
// With the whitening profiles of the report's pairs, from activations of its models, which are loaded by
// name; the watch is told pairs. The models may be another user's, or gone: then the extras say so, and
// so they do where a model of this name is not the one that the run used.
ReportExtras whitening_of(const Report& report, ThreadPool& pool, const Watch& watch = {});
// The page's data: one JSON document.
std::string report_json(const Report& report, const Run& run, const ReportExtras& extras);
// The data of the page that compares two runs.
std::string comparison_json(const CommonItems& common, const Report& a, const Report& b,
                            std::span<const Difference> differences);

// The page with its data in it. `page` is the template with the marker of kPageData; the data is deflated.
inline constexpr std::string_view kPageData = "@DEEPTAIL_DATA@";
std::string render_page(std::string_view page, std::string_view json);

struct TableFile {
  std::string name, text;
};
// CSV, Markdown and LaTeX (booktabs) of the losses under each profile, of errors and of all settings.
std::vector<TableFile> report_tables(const Report& report);
// The paper's figures of a run, as SVG: losses by model, by distribution and by loss, estimates over truths,
// variances before and after whitening, settings of one method.
std::vector<TableFile> report_figures(const Report& report, const Run& run, const ReportExtras& extras);

}  // namespace deeptail
