#include "cli/truth_report.h"

#include <algorithm>
#include <cmath>

#include "cli/output.h"
#include "cli/tokens.h"
#include "core/json.h"
#include "core/progress.h"

namespace deeptail::cli {

namespace {

// The tokenizer of the counted model, when a model of that name is at hand.
std::optional<NamedTokenizer> tokenizer_for(const Truth& truth) {
  try {
    const std::string folder = find_model(truth.model);
    return tokenizer_of(read_config(folder), folder);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::vector<TokenId> most_frequent_first(const Truth& truth) {
  std::vector<TokenId> tokens;
  for (const auto& [token, count] : truth.counts) tokens.push_back(token);
  std::stable_sort(tokens.begin(), tokens.end(),
                   [&](TokenId a, TokenId b) { return truth.count(a) > truth.count(b); });
  return tokens;
}

void print_row(const Truth& truth, const std::optional<NamedTokenizer>& tokenizer, TokenId token) {
  fmt::print("  {:>7} {:>14} {:>11.3e}  {}\n", token, truth.count(token), truth.q(token),
             shown(tokenizer, token));
}

void print_decades(const Truth& truth) {
  std::map<int, std::size_t, std::greater<>> decades;  // 10^key <= q < 10^(key + 1)
  for (const auto& [token, count] : truth.counts)
    ++decades[std::min(-1, static_cast<int>(std::floor(std::log10(truth.q(token)))))];
  fmt::print("\n  {:>16}  tokens\n", "q from");
  for (const auto& [decade, n] : decades)
    fmt::print("  {:>16}  {}\n", fmt::format("1e{:+03} to 1e{:+03}", decade, decade + 1), n);
}

OrderedJson counts_json(const Truth& truth) {
  OrderedJson counts = OrderedJson::object();
  for (const auto& [token, count] : truth.counts) append_field(counts, std::to_string(token), count);
  return {{"samples", truth.samples()}, {"counts", counts}};
}

}  // namespace

void show_truth(const Truth& truth, bool json) {
  if (json) {
    print_json(counts_json(truth));
    return;
  }
  const auto tokenizer = tokenizer_for(truth);
  fmt::print("{} on {}: {} inputs (2^{:.4g}), {} tokens seen\n", printable(truth.model),
             printable(truth.dist), truth.samples(), std::log2(static_cast<double>(truth.samples())),
             truth.counts.size());
  for (const TruthRange& range : truth.ranges) fmt::print("  {}\n", printable(describe(range), 200));
  if (!truth.model_sha256.empty()) fmt::print("  model sha256 {}\n", truth.model_sha256);
  if (!truth.dist_sha256.empty()) fmt::print("  dist  sha256 {}\n", truth.dist_sha256);
  print_decades(truth);

  const std::vector<TokenId> tokens = most_frequent_first(truth);
  const std::size_t n_top = std::min<std::size_t>(10, tokens.size()),
                    n_rare = std::min<std::size_t>(10, tokens.size() - n_top);
  fmt::print("\n  {:>7} {:>14} {:>11}  the most frequent\n", "id", "count", "q");
  for (std::size_t i = 0; i < n_top; ++i) print_row(truth, tokenizer, tokens[i]);
  if (n_rare == 0) return;
  fmt::print("\n  {:>7} {:>14} {:>11}  some rare ones\n", "id", "count", "q");
  // Spread over the rarer half.
  const std::size_t begin = std::max(n_top, tokens.size() / 2), width = tokens.size() - begin;
  for (std::size_t i = 0; i < std::min(n_rare, width); ++i)
    print_row(truth, tokenizer, tokens[begin + i * width / std::min(n_rare, width)]);
}

void show_comparison(const Truth& a, const Truth& b, bool json) {
  const TruthComparison c = compare_truth(a, b);
  if (json) {
    OrderedJson unseen = OrderedJson::array();
    for (const TokenId token : c.unseen) unseen.push_back({{"id", token}, {"q", b.q(token)}});
    print_json({{"samples", {a.samples(), b.samples()}},
                {"tokens", c.n_tokens},
                {"max_z", c.max_z},
                {"max_z_token", c.max_z_token},
                {"chi_square", c.chi_square},
                {"degrees", c.degrees},
                {"p_value", c.p_value},
                {"unseen", unseen}});
    return;
  }
  const auto tokenizer = tokenizer_for(b);
  fmt::print("{} on {}: {} and {} inputs\n", printable(a.model), printable(a.dist), a.samples(), b.samples());
  fmt::print("tokens with at least 50 expected counts: {}\n", c.n_tokens);
  if (c.n_tokens > 0)
    fmt::print("largest difference: {:.2f} standard deviations, token {} {}\n", c.max_z, c.max_z_token,
               shown(tokenizer, c.max_z_token));
  fmt::print("chi-square {:.1f} with {} degrees of freedom, p-value {:.3g}\n", c.chi_square, c.degrees,
             c.p_value);
  fmt::print("said in the second, never in the first: {} tokens\n", c.unseen.size());
  if (c.unseen.empty()) return;
  fmt::print("\n  {:>7} {:>14} {:>11}  the most frequent of them\n", "id", "count", "q");
  for (std::size_t i = 0; i < std::min<std::size_t>(10, c.unseen.size()); ++i)
    print_row(b, tokenizer, c.unseen[i]);
}

}  // namespace deeptail::cli
