// The chain of tokens that a random hex string is cut into.
//
// u may follow t iff the text t + u is cut into (t, u), and a sequence of tokens is what the tokenizer makes of its text
// iff all its neighbours may follow each other. So with M[t, u] = 16^-length(u) where u may follow t, and h = M h the
// chance that the text to come leaves t whole, tokens form a chain with steps M[t, u] h[u] / h[t].
#include "inputs/builders/hex_chain.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace deeptail {

namespace {

constexpr int kIterations = 2000;
constexpr double kSurelyOne = 1e-9;

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

struct Chain {
  std::vector<TokenId> ids;     // [n], ascending
  std::vector<double> weights;  // M: [n, n]
};

Chain chain_of(const BuilderVocabulary& vocabulary) {
  Chain chain;
  std::vector<std::string> texts;
  const auto is_cut_into = [&](const std::string& text, const std::vector<TokenId>& ids) {
    return vocabulary.tokenizer.encode(text) == ids;
  };
  for (const auto& [id, text] : vocabulary.text)
    if (is_hex(text) && is_cut_into(text, {id})) {
      chain.ids.push_back(id);
      texts.push_back(text);
    }
  const std::size_t n = chain.ids.size();
  if (n == 0) throw InputError("the tokenizer has no tokens of hex digits");
  chain.weights.assign(n * n, 0.0);
  for (std::size_t t = 0; t < n; ++t)
    for (std::size_t u = 0; u < n; ++u)
      if (is_cut_into(texts[t] + texts[u], {chain.ids[t], chain.ids[u]}))
        chain.weights[t * n + u] = std::pow(16.0, -static_cast<double>(texts[u].size()));
  return chain;
}

// h = M h, its largest value 1. Throws InputError where tokens are not a chain of that kind.
std::vector<double> chances_to_stay_whole(const Chain& chain) {
  const std::size_t n = chain.ids.size();
  std::vector<double> h(n, 1.0), next(n);
  double growth = 0.0;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    for (std::size_t t = 0; t < n; ++t)
      next[t] = std::inner_product(h.begin(), h.end(),
                                   chain.weights.begin() + static_cast<std::ptrdiff_t>(t * n), 0.0);
    growth = *std::max_element(next.begin(), next.end());
    for (std::size_t t = 0; t < n; ++t) h[t] = next[t] / growth;
  }
  if (!(std::abs(growth - 1.0) < kSurelyOne))
    throw InputError(
        "hex: with this tokenizer, tokens of a random hex string do not depend on their neighbours alone");
  return h;
}

}  // namespace

Frequencies hex_frequencies(const BuilderVocabulary& vocabulary) {
  const Chain chain = chain_of(vocabulary);
  const std::size_t n = chain.ids.size();
  const std::vector<double> h = chances_to_stay_whole(chain);
  std::vector<double> steps(n * n);
  for (std::size_t t = 0; t < n; ++t)
    for (std::size_t u = 0; u < n; ++u) steps[t * n + u] = chain.weights[t * n + u] * h[u] / h[t];
  std::vector<double> pi(n, 1.0 / static_cast<double>(n)), next(n);
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    std::fill(next.begin(), next.end(), 0.0);
    for (std::size_t t = 0; t < n; ++t)
      for (std::size_t u = 0; u < n; ++u) next[u] += pi[t] * steps[t * n + u];
    std::swap(pi, next);
  }
  const double sum = std::accumulate(pi.begin(), pi.end(), 0.0);
  Frequencies out;
  for (std::size_t t = 0; t < n; ++t)
    if (pi[t] > 0.0) out[chain.ids[t]] = pi[t] / sum;
  return out;
}

}  // namespace deeptail
