#include <algorithm>
#include <map>

#include "deeptail/prior.h"

namespace deeptail {

namespace {

// Group numbers by token id; the tokens seen too rarely share the last number.
std::vector<std::uint32_t> number_groups(std::span<const TokenId> tokens, std::size_t min_size,
                                         std::size_t& n_groups) {
  std::map<TokenId, std::size_t> count;
  for (const TokenId token : tokens) ++count[token];
  std::map<TokenId, std::uint32_t> number;
  std::uint32_t next = 0;
  for (const auto& [token, n] : count)
    if (n >= min_size) number[token] = next++;
  const std::uint32_t rest = next;
  std::vector<std::uint32_t> out(tokens.size());
  n_groups = next;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto found = number.find(tokens[i]);
    out[i] = found == number.end() ? rest : found->second;
    if (found == number.end()) n_groups = rest + 1;
  }
  return out;
}

}  // namespace

GroupedCloud group_activations(const Activations& a, std::size_t min_size, double relative_ridge,
                               ThreadPool& pool) {
  if (a.last_tokens.size() != a.n)
    throw InputError(
        "conditioned prior: the activations carry no tokens; it needs a model and a distribution")
        .with_hint(Hint::kSubject);
  const std::size_t d = a.d_model;
  std::size_t n_groups = 0;
  GroupedCloud out;
  out.group = number_groups(a.last_tokens, min_size, n_groups);
  std::vector<double> sums(n_groups * d, 0.0), sizes(n_groups, 0.0);
  for (std::size_t i = 0; i < a.n; ++i) {
    sizes[out.group[i]] += 1.0;
    for (std::size_t j = 0; j < d; ++j) sums[out.group[i] * d + j] += a.rows().row(i)[j];
  }
  double total = 0.0;
  for (std::size_t g = 0; g < n_groups; ++g) {
    total += sizes[g];
    out.cumulative.push_back(total / static_cast<double>(a.n));
    for (std::size_t j = 0; j < d; ++j) out.means.push_back(static_cast<float>(sums[g * d + j] / sizes[g]));
  }
  out.residuals.resize(a.n * d);
  for (std::size_t i = 0; i < a.n; ++i)
    for (std::size_t j = 0; j < d; ++j)
      out.residuals[i * d + j] = a.rows().row(i)[j] - out.means[out.group[i] * d + j];
  if (a.n <= n_groups + d)
    throw InputError("conditioned prior: {} activations in {} groups leave too few to fit dimension {}", a.n,
                     n_groups, d);
  Moments m = moments(a.n, d, {out.residuals.data(), d}, pool);
  // Every group spent one degree of freedom on its mean.
  for (double& c : m.covariance) c *= static_cast<double>(a.n) / static_cast<double>(a.n - n_groups);
  std::fill(m.mean.begin(), m.mean.end(), 0.0);
  out.whitening = whitening(m, relative_ridge);
  return out;
}

}  // namespace deeptail
