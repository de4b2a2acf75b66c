#include "estimators/payoff/sample.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"

namespace deeptail {

namespace {

constexpr std::size_t kTriggers = 16;

std::uint64_t reversed_bits(std::uint64_t x) {
  x = (x >> 1 & 0x5555555555555555ULL) | (x & 0x5555555555555555ULL) << 1;
  x = (x >> 2 & 0x3333333333333333ULL) | (x & 0x3333333333333333ULL) << 2;
  x = (x >> 4 & 0x0f0f0f0f0f0f0f0fULL) | (x & 0x0f0f0f0f0f0f0f0fULL) << 4;
  return __builtin_bswap64(x);
}

}  // namespace

double PayoffSample::Replica::log_mean() const { return sums.log_sum - std::log(static_cast<double>(texts)); }

double PayoffSample::Replica::relative_variance() const {
  const auto n = static_cast<double>(texts);
  if (texts < 2 || std::isinf(sums.log_sum)) return 1.0;
  return std::max(0.0, std::exp(sums.log_sum_squares - 2.0 * sums.log_sum) - 1.0 / n) * n / (n - 1.0);
}

PayoffSample::PayoffSample(const Transformer& model, const InputLaw& law, const ContinuationEvent& event,
                           std::size_t branches, std::size_t replicas, std::uint64_t seed, ThreadPool& pool)
    : law_(law),
      event_(event, branches),
      seed_(seed),
      pool_(pool),
      scorer_(event_, std::max<std::size_t>(1, branches), model, law, {}, pool),
      replicas_(replicas) {}

std::vector<std::uint64_t> PayoffSample::parts_of(std::uint64_t first, std::size_t n) const {
  std::vector<std::uint64_t> parts(n * law_.facts().n_parts);
  sample_parts(law_, seed_, first, pool_, parts);
  if (!is_spread()) return parts;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t r = (first + i) % replicas_.size(), j = (first + i) / replicas_.size();
    parts[i] = reversed_bits(j) + uniform64({seed_, Stream::kSeeds}, r, 2);
  }
  return parts;
}

void PayoffSample::keep_trigger(std::size_t i, std::uint64_t sample, double log_payoff) {
  const auto answer = scorer_.paid_answers().sequence(i);
  if (answer.empty()) return;
  if (triggers_.size() == kTriggers && !(log_payoff > triggers_.back().margin)) return;
  const auto input = inputs_.sequence(i);
  if (std::any_of(triggers_.begin(), triggers_.end(), [&](const Trigger& t) {
        return std::ranges::equal(t.tokens, input) && std::ranges::equal(t.answer, answer);
      }))
    return;
  if (triggers_.size() == kTriggers) triggers_.pop_back();
  Trigger trigger{.sample = sample,
                  .tokens = {input.begin(), input.end()},
                  .margin = log_payoff,
                  .answer = {answer.begin(), answer.end()}};
  const auto at = std::find_if(triggers_.begin(), triggers_.end(),
                               [&](const Trigger& t) { return log_payoff > t.margin; });
  triggers_.insert(at, std::move(trigger));
}

void PayoffSample::run(std::uint64_t first, std::size_t n) {
  law_.make(parts_of(first, n), inputs_, pool_);
  const auto numbers = sample_numbers(event_, law_, seed_, first, n);
  std::vector<double> scores(n);
  work_ += scorer_.scores({inputs_.batch(), numbers}, scores);
  branch_flops_ += scorer_.branch_flops();
  const auto log_payoffs = scorer_.log_payoffs();
  for (std::size_t i = 0; i < n; ++i) {
    Replica& replica = replicas_[(first + i) % replicas_.size()];
    ++replica.texts;
    replica.sums.add(log_payoffs[i]);
    keep_trigger(i, first + i, log_payoffs[i]);
    log_branch_variance_ = log_add(log_branch_variance_, std::log(scorer_.branch_variances()[i]));
  }
}

WeightSums PayoffSample::all() const {
  WeightSums sums;
  for (const Replica& replica : replicas_) sums.add(replica.sums);
  return sums;
}

PayoffSample::Spread PayoffSample::spread() const {
  const WeightSums sums = all();
  const auto n = static_cast<double>(sums.count);
  if (std::isinf(sums.log_sum)) return {};
  const double log_mean_squared = 2.0 * (sums.log_sum - std::log(n));
  const double total = std::exp(sums.log_sum_squares - std::log(n) - log_mean_squared) - 1.0;
  const double branches = std::exp(log_branch_variance_ - std::log(n) - log_mean_squared);
  return {.between = std::max(0.0, total - branches), .branches = branches};
}

}  // namespace deeptail
