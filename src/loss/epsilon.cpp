#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "deeptail/loss.h"

namespace deeptail {

namespace {

// qmin/mmax (base^(1/alpha) - 1), the shape of every bound, from the logarithm of base.
double bound_from_log(const EpsilonQuery& query, double log_base) {
  return query.qmin / query.mmax * std::expm1(log_base / query.alpha);
}

// (1 + mmax eps / qmin)^-alpha: the most that the shift takes away from a loss on the box (eq.
// fn_shift_bounds).
double log_shift_factor(const EpsilonQuery& query, double epsilon) {
  return -query.alpha * std::log1p(query.mmax * epsilon / query.qmin);
}

constexpr std::array kProfiles{
    Profile{"benchmarking", 1.5, 0.0, "fair comparison of methods: over- and underestimates cost the same"},
    Profile{"oversight", 2.0, 0.0, "mild aversion to underestimates, close to Itakura-Saito"},
    Profile{"stress", 2.0, 1.0, "deep tail: a ten times rarer target weighs ten times more"},
    Profile{"audit", 4.0, 2.0, "catastrophic risk: underestimates of the rarest targets dominate"},
};

}  // namespace

std::string_view name(EpsilonBound bound) {
  switch (bound) {
    case EpsilonBound::scale:
      return "theorem1";
    case EpsilonBound::asymmetry:
      return "theorem2";
    case EpsilonBound::ratio:
      return "ratio";
  }
  return "";
}

void EpsilonQuery::validate() const {
  if (!(alpha >= 0.0) || !std::isfinite(alpha))
    throw InputError("alpha must be a finite number of at least 0, found {}", alpha);
  if (!(qmin > 0.0 && qmin < 1.0)) throw InputError("qmin must lie in (0,1), found {}", qmin);
  if (!(mmax > 1.0) || !std::isfinite(mmax))
    throw InputError("mmax must be a finite factor above 1, found {}", mmax);
  if (!(m0 > 1.0 && m0 <= mmax)) throw InputError("m0 must lie in (1, mmax = {}], found {}", mmax, m0);
  if (!(eta > 0.0 && eta < 1.0)) throw InputError("eta must lie in (0,1), found {}", eta);
  if (ratio && (!(*ratio >= 1.0) || !std::isfinite(*ratio)))
    throw InputError("the FN/FP ratio must be a finite number of at least 1, found {}", *ratio);
}

EpsilonBounds epsilon_bounds(const EpsilonQuery& query) {
  query.validate();
  const double r = asymmetry_ratio(query.alpha, query.m0);
  EpsilonBounds out{.scale = query.alpha > 0.0 ? bound_from_log(query, -std::log1p(-query.eta))
                                               : std::numeric_limits<double>::infinity(),
                    .asymmetry = {},
                    .corollary = {},
                    .ratio = {},
                    .binds = EpsilonBound::scale,
                    .heuristic = query.qmin / (100.0 * query.mmax),
                    .ratio_at_m0 = r};
  if (query.alpha > 1.5 && r > 1.0) {
    out.asymmetry = bound_from_log(query, std::log(r));
    out.corollary = std::min(out.scale, *out.asymmetry);
    if (*out.asymmetry < out.scale) out.binds = EpsilonBound::asymmetry;
  }
  if (query.ratio && query.alpha > 1.5 && r > *query.ratio) {
    out.ratio = bound_from_log(query, std::log(r / *query.ratio));
    if (*out.ratio < out.corollary.value_or(out.scale)) out.binds = EpsilonBound::ratio;
  }
  return out;
}

// Paragraph "Effect of the shift". R_alpha(m) is smallest at m0 only for alpha >= 3/2; below, it falls with
// m.
double guaranteed_ratio(const EpsilonQuery& query, double epsilon) {
  const double worst_m = query.alpha >= 1.5 ? query.m0 : query.mmax;
  return asymmetry_ratio(query.alpha, worst_m) * std::exp(log_shift_factor(query, epsilon));
}

double guaranteed_distortion(const EpsilonQuery& query, double epsilon) {
  return -std::expm1(log_shift_factor(query, epsilon));
}

EpsilonChoice choose_epsilon(const EpsilonQuery& query) {
  const EpsilonBounds bounds = epsilon_bounds(query);
  if (bounds.corollary) return {0.5 * *bounds.corollary, "corollary"};
  return {bounds.heuristic, "heuristic"};
}

std::span<const Profile> profiles() { return kProfiles; }

const Profile& find_profile(std::string_view name) {
  std::string known;
  for (const Profile& profile : kProfiles) {
    if (profile.name == name) return profile;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", profile.name);
  }
  throw InputError("no profile is called '{}': choose one of {}", name, known);
}

}  // namespace deeptail
