// Inputs of each token, kept while they are counted.
#include <algorithm>

#include "core/memory.h"
#include "truth/truth.h"

namespace deeptail {

HitStore::HitStore(std::size_t d_vocab, std::uint64_t most) : most_(most), numbers_(d_vocab) {
  if (most == 0) throw InputError("0 inputs of each token: expected at least one to keep");
  // Twice, as vectors grow, and a copy of text while they are saved.
  const double bytes = (2.0 * sizeof(std::uint64_t) + 2.0 * sizeof(HitInput)) * static_cast<double>(most) *
                       static_cast<double>(d_vocab);
  check_memory(fmt::format("keeping {} inputs of each of {} tokens", most, d_vocab), bytes,
               "keep fewer of each");
}

void HitStore::add(std::uint64_t first, std::span<const TokenId> said) {
  for (std::size_t i = 0; i < said.size(); ++i) {
    std::vector<std::uint64_t>& numbers = numbers_[static_cast<std::size_t>(said[i])];
    if (numbers.size() < most_) numbers.push_back(first + i);
  }
}

void HitStore::restore(const TruthHits& earlier, std::uint64_t end) {
  for (const auto& [token, inputs] : earlier.inputs) {
    if (static_cast<std::size_t>(token) >= numbers_.size())
      throw InputError("inputs of token {}: the model has {} tokens", token, numbers_.size());
    for (const HitInput& input : inputs)
      if (input.number < end) numbers_[static_cast<std::size_t>(token)].push_back(input.number);
  }
}

std::map<TokenId, std::vector<HitInput>> HitStore::inputs() const {
  std::map<TokenId, std::vector<HitInput>> out;
  for (std::size_t id = 0; id < numbers_.size(); ++id)
    for (const std::uint64_t number : numbers_[id]) out[static_cast<TokenId>(id)].push_back({0, number});
  return out;
}

std::vector<TokenId> hit_tokens(const TruthHits& hits, const Distribution& dist, TokenId token) {
  if (hits.dist_sha256 != dist.sha256)
    throw InputError("inputs of the distribution {} (SHA-256 {:.12}): found {} (SHA-256 {:.12})", hits.dist,
                     hits.dist_sha256, dist.name, dist.sha256);
  const auto found = hits.inputs.find(token);
  if (found == hits.inputs.end()) return {};
  const std::size_t length = dist.length();
  std::vector<TokenId> tokens(found->second.size() * length);
  for (std::size_t i = 0; i < found->second.size(); ++i) {
    const HitInput& input = found->second[i];
    const TruthRange& range = hits.ranges[input.range];
    if (drawn_by(range) != "deeptail")
      throw InputError("inputs drawn by {}: only those drawn by deeptail can be made again", range.source);
    sample(dist, range.seed, input.number, std::span(tokens).subspan(i * length, length));
  }
  return tokens;
}

}  // namespace deeptail
