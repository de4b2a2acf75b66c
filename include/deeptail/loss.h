// Scoring of rare-event estimates: the Shifted-Power Bregman (SPB) loss, what is needed to choose its
// parameters, the losses it is compared with, and how much of a score is noise. Equations and theorems are
// those of the paper's loss section and its appendices "SPB Loss Theory" and "SPB Loss Guarantees and
// Parameterization".
//
// q is the truth, in (0,1); p is the estimate, in [0,1].
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/core.h"

namespace [[gnu::visibility("default")]] deeptail {

// ---- the loss ----

struct SpbParameters {
  double alpha = 1.5;    // above 1.5 underestimates cost more than overestimates, below 1.5 less
  double gamma = 0.0;    // rarity premium: a ten times rarer target weighs 10^gamma times more
  double epsilon = 0.0;  // shift that keeps the loss finite at p = 0

  void validate() const;  // throws InputError
};

// B_eps(q|p) = integral from q to p of (t - q) (t + eps)^-alpha dt. Relative error below 1e-12 for alpha up
// to 8, q of at least 1e-30 and eps zero or at least 1e-30; beyond, digits fade gradually. +infinity where
// the integral diverges (eps = 0, p = 0, alpha >= 1); never NaN for q in (0,1), p in [0,1].
double spb_pointwise(const SpbParameters& s, double q, double p);

// q^(alpha - 2 - gamma) B_eps(q|p), the term of the dataset loss; formed without overflow of either factor.
double spb_weighted(const SpbParameters& s, double q, double p);

// The same for a whole batch. All spans have one length.
void spb_pointwise(const SpbParameters& s, std::span<const double> q, std::span<const double> p,
                   std::span<double> out);
void spb_weighted(const SpbParameters& s, std::span<const double> q, std::span<const double> p,
                  std::span<double> out);

// The dataset loss: the plain mean of spb_weighted, not divided by the sum of the weights.
double spb_loss(const SpbParameters& s, std::span<const double> q, std::span<const double> p);

// ---- the losses it is compared with ----

double squared_error(double q, double p);      // (p - q)^2
double log_squared_error(double q, double p);  // (ln p - ln q)^2, infinite at p = 0
double itakura_saito(double q, double p);      // q/p - ln(q/p) - 1, infinite at p = 0

struct StandardLosses {
  double squared, log_squared, itakura_saito;  // means
};
StandardLosses standard_losses(std::span<const double> q, std::span<const double> p);

// ---- asymmetry: how much worse is q/m than m q? ----

double i_fp(double alpha, double m);  // eq. ifp_def: the unshifted loss of p = m q at q = 1
double i_fn(double alpha, double m);  // eq. ifn_def: the same of p = q/m; equals i_fp(3 - alpha, m)
double asymmetry_ratio(double alpha, double m);  // R_alpha(m) = i_fn / i_fp

// The smallest alpha, to within `tolerance` and on the safe side, with R_alpha(m0) >= ratio. ratio > 1, m0
// > 1. Throws InputError where no alpha below 1e9 reaches the ratio.
double alpha_for_ratio(double ratio, double m0, double tolerance = 1e-13);

// ---- the shift ----

// The box on which the guarantees hold: truths of at least qmin, errors by factors m0 .. mmax.
struct EpsilonQuery {
  double alpha = 2.0;
  double qmin = 1e-9;
  double mmax = 100.0;
  double m0 = 2.0;
  double eta = 0.05;                 // accepted scale distortion
  std::optional<double> ratio = {};  // wanted FN/FP ratio r* on the whole box

  void validate() const;  // throws InputError
};

enum class EpsilonBound { scale, asymmetry, ratio };
std::string_view name(EpsilonBound bound);

// Largest admissible eps by each result. No value: the result promises nothing for any positive eps.
struct EpsilonBounds {
  double scale;  // theorem 1: distortion at most eta (infinite at alpha = 0: no distortion)
  std::optional<double> asymmetry;  // theorem 2: q/m costs more than m q; needs alpha > 3/2
  std::optional<double> corollary;  // both at once: eps must stay strictly below
  std::optional<double> ratio;      // eq. eps_ratio_rstar: FN/FP ratio at least r*; needs R_alpha(m0) > r*
  EpsilonBound binds;               // the smallest of those that were asked for and exist
  double heuristic;                 // 0.01 qmin / mmax
  double ratio_at_m0;               // R_alpha(m0), the ratio without shift
};
EpsilonBounds epsilon_bounds(const EpsilonQuery& query);

// What a chosen eps guarantees on the box.
double guaranteed_ratio(const EpsilonQuery& query, double epsilon);       // FN/FP ratio at least this
double guaranteed_distortion(const EpsilonQuery& query, double epsilon);  // scale distortion at most this

// Half the corollary's bound, or the heuristic where the corollary gives none.
struct EpsilonChoice {
  double epsilon;
  std::string_view rule;  // "corollary" or "heuristic"
};
EpsilonChoice choose_epsilon(const EpsilonQuery& query);

// The use cases of the paper's guidance table.
struct Profile {
  std::string_view name;
  double alpha, gamma;
  std::string_view emphasis;
};
std::span<const Profile> profiles();
const Profile& find_profile(std::string_view name);  // throws InputError

// ---- calibration, which uses the truth ----

// p -> a p^c + b with a, b, c >= 0, fitted by minimising the mean Itakura-Saito loss.
struct Calibration {
  double a, c, b;
  double loss_uncalibrated;                 // Itakura-Saito of the raw estimates
  double loss_fitted;                       // of the estimates calibrated by the fit to all pairs
  double loss_leave_one_out;                // each pair calibrated by the fit to the others
  std::vector<double> leave_one_out;        // the calibrated estimates, [n]
  static constexpr bool uses_truth = true;  // not available when the truth is unknown
};
// Needs at least 5 pairs. The result does not depend on the number of threads.
Calibration calibrate(std::span<const double> q, std::span<const double> p, ThreadPool& pool);

// ---- noise ----

// The SPB loss of an estimator that returns the exact probabilities, when the truths are counts out of
// `samples`.
struct NoiseFloor {
  double mean, sd;  // of the dataset loss over repetitions of the count
};
// counts in 1 .. samples-1. Plug-in: the exact probability of target i is taken to be counts[i] / samples.
NoiseFloor noise_floor(const SpbParameters& s, std::span<const std::uint64_t> counts, std::uint64_t samples);

struct BootstrapConfig {
  std::size_t resamples = 10000;
  std::uint64_t seed = 1;
  void validate() const;
};
struct PairedBootstrap {
  double difference;  // mean loss of A minus mean loss of B
  double ci95[2];     // percentile interval over resampled targets
  double a_beats_b;   // share of resamples in which A has the smaller loss, ties counted half
};
// Losses of A and B per target, [n], finite. The same answer for any number of threads.
PairedBootstrap paired_bootstrap(std::span<const double> loss_a, std::span<const double> loss_b,
                                 const BootstrapConfig& config, ThreadPool& pool);

// ---- pairs of truth and estimate ----

struct Pairs {
  std::vector<double> truth, estimate;          // [n]
  std::vector<std::size_t> line;                // [n], where each row starts in the file
  std::vector<std::vector<std::string>> group;  // [n] or none: the row's values in the columns asked for
};
// CSV with a header that names the columns truth and estimate, in any order and among others. RFC 4180
// quoting, LF or CRLF, an optional UTF-8 byte order mark. Throws InputError naming `where` and the line of
// the first mistake. by: columns to keep as they are.
Pairs parse_pairs(std::string_view csv, std::string_view where, std::span<const std::string> by = {});

}  // namespace deeptail
