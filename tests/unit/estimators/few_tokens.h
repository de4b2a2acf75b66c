// dt-1l on a law with few inputs and some rare tokens: what it says after each of them is known.
#pragma once

#include <vector>

#include "unit/estimators/subject.h"

namespace deeptail {

// A start, a letter that stays, and free positions of six tokens each, from frequent to rare.
inline Distribution few_tokens(std::size_t free) {
  Distribution dist;
  dist.name = "few";
  dist.d_vocab = 4096;
  dist.tables.emplace_back("bos", std::vector<TokenId>{0}, std::vector<double>{1.0}, "bos");
  dist.tables.emplace_back("some", std::vector<TokenId>{16, 69, 310, 395, 1013, 2047},
                           std::vector<double>{0.6, 0.25, 0.1, 0.04, 0.009, 0.001}, "some");
  dist.positions = {0};
  dist.positions.insert(dist.positions.end(), free, 1);
  return dist;
}

// Every input: [n, length].
inline std::vector<TokenId> all_inputs_of(const Distribution& dist) {
  std::vector<TokenId> out;
  std::vector<std::size_t> digits(dist.length(), 0);
  for (bool more = true; more;) {
    for (std::size_t i = 0; i < digits.size(); ++i) out.push_back(dist.table(i).ids()[digits[i]]);
    more = false;
    for (std::size_t i = digits.size(); i-- > 0 && !more;) {
      more = ++digits[i] < dist.table(i).size();
      if (!more) digits[i] = 0;
    }
  }
  return out;
}

// The probability of each token: [d_vocab].
inline std::vector<double> exact_probabilities(const Distribution& dist, ThreadPool& pool) {
  const std::vector<TokenId> tokens = all_inputs_of(dist);
  const std::size_t length = dist.length(), n = tokens.size() / length, d = dt_1l().config().d_model;
  AlignedVector<float> resid(n * d);
  std::vector<TokenId> said(n);
  final_residuals(dt_1l(), {tokens, length}, pool, {resid.data(), d});
  argmax(dt_1l().head(), n, {resid.data(), d}, pool, said);
  std::vector<double> out(dist.d_vocab, 0.0);
  for (std::size_t i = 0; i < n; ++i)
    out[static_cast<std::size_t>(said[i])] +=
        std::exp(dist.log_probability(std::span(tokens).subspan(i * length, length)));
  return out;
}

}  // namespace deeptail
