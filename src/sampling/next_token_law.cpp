#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "core/random.h"
#include "deeptail/compute.h"
#include "deeptail/sampling.h"

namespace deeptail {

namespace {

constexpr std::size_t kBlock = 64;  // tokens whose sum is kept, so that a draw looks at few of them
constexpr double kNever = -std::numeric_limits<double>::infinity();

// In eight fixed lanes, which the compiler keeps in vectors.
double sum_of(std::span<const float> values) {
  std::array<double, 8> lanes{};
  std::size_t i = 0;
  for (; i + 8 <= values.size(); i += 8)
    for (std::size_t lane = 0; lane < 8; ++lane) lanes[lane] += static_cast<double>(values[i + lane]);
  for (std::size_t lane = 0; i < values.size(); ++i, ++lane) lanes[lane] += static_cast<double>(values[i]);
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Weights are at most 1 and not negative, so that their bits are in their order: buckets of a quarter of an octave.
constexpr std::size_t kBucketShift = 21, kBuckets = (std::bit_cast<std::uint32_t>(1.0f) >> kBucketShift) + 1;
std::size_t bucket_of(float weight) {
  return std::min<std::size_t>(std::bit_cast<std::uint32_t>(weight) >> kBucketShift, kBuckets - 1);
}

}  // namespace

NextTokenLaw::NextTokenLaw(const SamplingConfig& config, std::size_t d_vocab)
    : temperature_(config.temperature),
      top_p_(config.top_p),
      top_k_(config.top_k >= d_vocab ? 0 : config.top_k),
      greedy_(config.greedy),
      cuts_(greedy_ || top_k_ > 0 || top_p_ < 1.0),
      logits_(d_vocab),
      before_(d_vocab),
      cut_(cuts_ ? d_vocab : 0),
      kept_(cuts_ ? d_vocab : 0),
      block_sums_((d_vocab + kBlock - 1) / kBlock) {
  config.validate(d_vocab);
  order_.reserve(d_vocab);
}

bool NextTokenLaw::in_law(std::size_t i) const {
  return cuts_ ? kept_[i] != 0 : logits_[i] > -std::numeric_limits<float>::infinity();
}

void NextTokenLaw::set(std::span<const float> logits) {
  if (logits.size() != d_vocab()) throw std::invalid_argument("NextTokenLaw: one logit per token");
  std::ranges::copy(logits, logits_.begin());
  const Best best = best_of(logits_.size(), logits_.data());
  if (!std::isfinite(best.value))
    throw std::invalid_argument("NextTokenLaw: the largest logit is not finite");
  top_ = best.value;
  most_likely_ = static_cast<TokenId>(best.index);
  std::ranges::copy(logits, before_.begin());
  softmax(before_.size(), static_cast<float>(1.0 / temperature_), before_.data());

  const auto add_blocks = [&](std::span<const float> weights) {
    double total = 0.0;
    for (std::size_t b = 0; b < block_sums_.size(); ++b) {
      block_sums_[b] = sum_of(weights.subspan(b * kBlock, std::min(kBlock, weights.size() - b * kBlock)));
      total += block_sums_[b];
    }
    return total;
  };
  before_total_ = add_blocks(before_);
  // The softmax's own factor is left out of logs, which are of the logits themselves.
  log_before_ = std::log(before_total_ / static_cast<double>(before_[best.index]));
  if (!cuts_) return;
  std::ranges::fill(kept_, std::uint8_t{1});
  if (greedy_) {
    keep_only(most_likely_);
  } else {
    if (top_k_ > 0) cut_to_top_k(top_k_);
    if (top_p_ < 1.0) cut_to_top_p(top_p_);
  }
  for (std::size_t i = 0; i < cut_.size(); ++i) {
    if (!(logits_[i] > -std::numeric_limits<float>::infinity())) kept_[i] = 0;
    cut_[i] = kept_[i] != 0 ? before_[i] : 0.0f;
  }
  cut_total_ = add_blocks(cut_);
  log_cut_ = std::log(cut_total_ / static_cast<double>(before_[best.index]));
}

void NextTokenLaw::keep_only(TokenId token) {
  std::ranges::fill(kept_, std::uint8_t{0});
  kept_[index(token)] = 1;
}

// Tokens whose logit is at least the k-th largest. It lies in one bucket of weights, whose logits are looked at.
void NextTokenLaw::cut_to_top_k(std::size_t k) {
  std::array<std::uint32_t, kBuckets> counts{};
  for (const float w : before_) ++counts[bucket_of(w)];
  std::size_t bucket = kBuckets - 1, above = 0;
  while (above + counts[bucket] < k) above += counts[bucket--];
  order_.clear();
  for (std::size_t i = 0; i < before_.size(); ++i)
    if (bucket_of(before_[i]) == bucket) order_.push_back(static_cast<std::uint32_t>(i));
  const auto kth = order_.begin() + static_cast<std::ptrdiff_t>(k - above - 1);
  std::nth_element(order_.begin(), kth, order_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return logits_[a] > logits_[b]; });
  const float least = logits_[*kth];
  for (std::size_t i = 0; i < logits_.size(); ++i) kept_[i] = logits_[i] >= least ? 1 : 0;
}

// Tokens before which, from the most likely on, less than p of the kept mass lies. Where that is reached is found among
// the buckets first, then within one.
void NextTokenLaw::cut_to_top_p(double p) {
  std::array<double, kBuckets> masses{};
  std::size_t lowest = kBuckets - 1, bucket = 0;  // small vocabularies fill few of them
  for (std::size_t i = 0; i < before_.size(); ++i) {
    if (kept_[i] == 0) continue;
    const std::size_t own = bucket_of(before_[i]);
    masses[own] += static_cast<double>(before_[i]);
    lowest = std::min(lowest, own);
    bucket = std::max(bucket, own);
  }
  double total = 0.0, above = 0.0;
  for (std::size_t b = lowest; b <= bucket; ++b) total += masses[b];
  const double enough = p * total;
  while (bucket > 0 && above + masses[bucket] < enough) above += masses[bucket--];
  order_.clear();
  for (std::size_t i = 0; i < before_.size(); ++i) {
    if (kept_[i] == 0 || bucket_of(before_[i]) > bucket) continue;
    if (bucket_of(before_[i]) == bucket) order_.push_back(static_cast<std::uint32_t>(i));
    kept_[i] = 0;
  }
  std::ranges::sort(order_, [&](std::uint32_t a, std::uint32_t b) {
    return logits_[a] != logits_[b] ? logits_[a] > logits_[b] : a < b;
  });
  for (const std::uint32_t i : order_) {
    if (above >= enough) break;
    kept_[i] = 1;
    above += static_cast<double>(before_[i]);
  }
}

double NextTokenLaw::log_p_before(TokenId token) const {
  const float logit = logits_[index(token)];
  if (logit == -std::numeric_limits<float>::infinity()) return kNever;
  return (static_cast<double>(logit) - static_cast<double>(top_)) / temperature_ - log_before_;
}

double NextTokenLaw::log_p(TokenId token) const {
  if (!cuts_) return log_p_before(token);
  if (!in_law(index(token))) return kNever;
  const double below_top = static_cast<double>(logits_[index(token)]) - static_cast<double>(top_);
  return below_top / temperature_ - log_cut_;
}

TokenId NextTokenLaw::draw(std::uint64_t number) const {
  if (greedy_) return most_likely_;
  const std::span<const float> w = weights();
  const double target = unit_double(number) * total();
  double sum = 0.0;
  std::size_t block = 0,
              last_block = 0;  // the last one with any weight: rounding may leave the target beyond all sums
  for (; block < block_sums_.size(); ++block) {
    if (block_sums_[block] > 0.0) last_block = block;
    if (sum + block_sums_[block] > target) break;
    sum += block_sums_[block];
  }
  const std::size_t first = last_block * kBlock;
  if (block == block_sums_.size()) sum = kNever;
  TokenId last = most_likely_;
  for (std::size_t i = first; i < std::min(first + kBlock, w.size()); ++i) {
    if (!(w[i] > 0.0f)) continue;
    last = static_cast<TokenId>(i);
    sum += static_cast<double>(w[i]);
    if (sum > target) break;
  }
  return last;
}

}  // namespace deeptail
