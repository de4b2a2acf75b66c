#include "estimators/head_score.h"

#include <algorithm>
#include <map>

namespace deeptail {

namespace {

// Tokens by how often they occur, most frequent first.
std::vector<TokenId> frequent_tokens(std::span<const TokenId> said) {
  std::map<TokenId, std::size_t> count;
  for (const TokenId token : said) ++count[token];
  std::vector<std::pair<TokenId, std::size_t>> sorted(count.begin(), count.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<TokenId> out;
  for (const auto& [token, n] : sorted) out.push_back(token);
  return out;
}

}  // namespace

HeadScore::HeadScore(const Head& head, const Target& target, const Whitening& whitening,
                     std::span<const float> group_means, const Screen& screen, ThreadPool& pool)
    : head_(head),
      target_(target),
      unwhitening_(whitening.unwhitening()),
      group_means_(group_means),
      screen_(screen),
      pool_(pool) {
  test_.emplace(head_, target_, std::span<const TokenId>(), &screen_);
}

std::unique_ptr<HeadScore::Scratch> HeadScore::make_scratch() const {
  return std::make_unique<Scratch>(Scratch{{}, test_->make_scratch()});
}

void HeadScore::unwhiten(std::size_t n, ConstRows u, std::span<const std::uint32_t> groups,
                         Rows resid) const {
  gemm(n, u, unwhitening_, resid);
  const std::size_t d = unwhitening_.n();
  for (std::size_t i = 0; i < groups.size(); ++i)
    for (std::size_t j = 0; j < d; ++j) resid.row(i)[j] += group_means_[groups[i] * d + j];
}

void HeadScore::evaluate(std::size_t n, ConstRows u, std::span<const std::uint32_t> groups,
                         std::span<double> values) {
  const std::size_t d = head_.d_model();
  AlignedVector<float> resid(n * d);
  unwhiten(n, u, groups, {resid.data(), d});
  std::vector<Margin> found(n);
  margins(head_, target_, n, {resid.data(), d}, pool_, found);
  std::vector<TokenId> in_the_way(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = found[i].value;
    in_the_way[i] = found[i].best_other;
  }
  // The answers are the same for any winners; only the time changes.
  std::vector<TokenId> winners = frequent_tokens(in_the_way);
  winners.insert(winners.end(), screen_.usual_winners().begin(), screen_.usual_winners().end());
  test_.emplace(head_, target_, winners, &screen_);
}

void HeadScore::at_least(double level, std::size_t n, ConstRows u, std::span<const std::uint32_t> groups,
                         std::span<std::uint8_t> passed, Scratch& scratch) const {
  const std::size_t d = head_.d_model();
  if (scratch.resid.size() < n * d) scratch.resid.resize(n * d);
  unwhiten(n, u, groups, {scratch.resid.data(), d});
  test_->at_least(level, n, {scratch.resid.data(), d}, passed, *scratch.margin);
}

}  // namespace deeptail
