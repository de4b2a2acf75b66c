#include "estimators/vocabulary/token_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "estimators/log_weights.h"

namespace deeptail {

namespace {

constexpr double kFloor = 1.15;  // of the upper end: an allowance for what no computation can see

// Tokens with a part of the weight that is worth telling apart.
std::set<TokenId> large_tokens(std::span<const SharedHit> hits, TokenId SharedHit::*where, double sum) {
  constexpr double kLarge = 0.05;
  std::map<TokenId, double> parts;
  for (const SharedHit& hit : hits) parts[hit.*where] += hit.weight / sum;
  std::set<TokenId> out;
  for (const auto& [token, part] : parts)
    if (part >= kLarge) out.insert(token);
  return out;
}

}  // namespace

double unseen_part(std::span<const SharedHit> hits) {
  struct Kind {
    std::uint32_t batch = 0;
    bool by_several = false;
    double weight = 0.0;
  };
  constexpr TokenId kAnyOther = -1;
  double sum = 0.0, alone = 0.0;
  for (const SharedHit& hit : hits) sum += hit.weight;
  const auto lasts = large_tokens(hits, &SharedHit::last, sum),
             befores = large_tokens(hits, &SharedHit::before, sum);
  std::map<std::pair<TokenId, TokenId>, Kind> kinds;
  for (const SharedHit& hit : hits) {
    const auto key = std::pair(lasts.contains(hit.last) ? hit.last : kAnyOther,
                               befores.contains(hit.before) ? hit.before : kAnyOther);
    const auto [at, is_new] = kinds.try_emplace(key, Kind{hit.batch});
    at->second.by_several = at->second.by_several || at->second.batch != hit.batch;
    at->second.weight += hit.weight;
  }
  for (const auto& [key, kind] : kinds)
    if (!kind.by_several) alone += kind.weight;
  return sum > 0.0 ? alone / sum : 0.0;
}

Estimate counted_row(TokenId token, std::uint64_t count, std::uint64_t samples) {
  Estimate e{.method = "mc", .target = {token}, .guarantee = Guarantee::kUnbiased};
  const Interval interval = clopper_pearson(count, samples, e.confidence);
  e.log_p = std::log(static_cast<double>(count) / static_cast<double>(samples));
  e.log_low = std::log(interval.low);
  e.log_high = std::log(interval.high);
  if (count == 0) e.status = Status::kNotReachedUpperBound;
  e.diagnostics = {{"count", static_cast<double>(count)}, {"samples", static_cast<double>(samples)}};
  return e;
}

Estimate weighted_row(TokenId token, const TokenTally& tally, std::uint64_t draws, std::size_t batches) {
  Estimate e{.method = "shared", .target = {token}, .guarantee = Guarantee::kUnbiased};
  const double effective = tally.effective(), sd = 1.0 / std::sqrt(effective);
  const double half = log_half_width(sd, effective, e.confidence), unseen = unseen_part(tally.first);
  e.log_p = std::log(tally.sum / static_cast<double>(draws));
  e.log_low = e.log_p - half;
  const double factor = std::max(std::exp(half), kFloor) + 0.5 * static_cast<double>(batches - 1) * unseen;
  e.log_high = std::min(0.0, e.log_p + std::log(factor));
  e.diagnostics = {{"relative_sd", sd},
                   {"hits", static_cast<double>(tally.hits)},
                   {"effective_hits", effective},
                   {"unseen_share", unseen}};
  constexpr double kFew = 10.0, kMuchUnseen = 0.1;
  if (effective < kFew)
    e.warnings.push_back(
        fmt::format("rests on {:.2g} hits of equal weight: the interval is wide", effective));
  else if (unseen > kMuchUnseen)
    e.warnings.push_back(
        fmt::format("{:.0f} % of it comes from kinds of inputs that one part of {} of the draws saw: others "
                    "may have been missed",
                    100.0 * unseen, batches));
  return e;
}

}  // namespace deeptail
