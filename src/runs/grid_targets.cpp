// The targets of a grid: chosen by their counts, or named.
#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "core/json.h"
#include "core/sha256.h"
#include "runs/grid.h"

namespace deeptail {

namespace {

constexpr std::size_t kSlices = 16;  // of a band of q
// Every beginning of this order is spread over the band, so that few targets are, too, and more targets hold
// the few.
constexpr std::size_t kSliceOrder[kSlices] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};

TokenId token_of(const SuiteToken& token, const ModelConfig& config, const NamedTokenizer* tokenizer) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(
        "{}: {} of model {}: {}", token.where,
        token.text.empty() ? fmt::format("token {}", token.id) : fmt::format("\"{}\"", printable(token.text)),
        printable(config.model_name), why);
  };
  if (token.text.empty()) {
    if (token.id >= config.d_vocab) refuse(fmt::format("it has the tokens 0 to {}", config.d_vocab - 1));
    return static_cast<TokenId>(token.id);
  }
  if (tokenizer == nullptr) refuse("it has no tokenizer, so only ids can be given");
  const auto id = tokenizer->tokenizer.id_of(token.text);
  if (!id || static_cast<std::uint64_t>(*id) >= config.d_vocab) refuse("it is not one token");
  return *id;
}

}  // namespace

std::uint64_t hashed_to_number(const std::string& text) {
  return std::stoull(sha256_hex(text).substr(0, 16), nullptr, 16);
}

std::vector<TokenId> tokens_of(const SuiteTargets& targets, const ModelConfig& config,
                               const NamedTokenizer* tokenizer) {
  std::set<TokenId> out;
  for (const SuiteToken& token : targets.tokens)
    if (const TokenId id = token_of(token, config, tokenizer); !out.insert(id).second)
      throw InputError("{}: token {} of model {} is there twice", token.where, id,
                       printable(config.model_name));
  return {out.begin(), out.end()};
}

std::vector<GridTarget> choose_targets(const Truth& truth, const SuiteTargets& choice) {
  struct Candidate {
    std::size_t slice;
    std::uint64_t order;
    GridTarget target;
  };
  const double low = std::log(choice.q_low), width = std::log(choice.q_high) - low;
  std::vector<std::vector<Candidate>> slices(kSlices);
  for (const auto& [token, count] : truth.counts) {
    const double q = static_cast<double>(count) / static_cast<double>(truth.samples());
    if (count == 0 || q < choice.q_low || q > choice.q_high) continue;
    const double at = width > 0.0 ? (std::log(q) - low) / width : 0.0;
    const auto slice = std::min(kSlices - 1, static_cast<std::size_t>(at * kSlices));
    slices[slice].push_back(
        {slice, hashed_to_number(fmt::format("target|{}|{}", choice.seed, token)), {token, count}});
  }
  for (auto& slice : slices)
    std::sort(slice.begin(), slice.end(), [](const Candidate& a, const Candidate& b) {
      return std::tie(a.order, a.target.token) < std::tie(b.order, b.target.token);
    });
  std::vector<GridTarget> chosen;
  for (std::size_t round = 0, before = 1; before > 0; ++round) {
    before = 0;
    for (const std::size_t s : kSliceOrder)
      if (round < slices[s].size() && chosen.size() < choice.count)
        chosen.push_back(slices[s][round].target), ++before;
  }
  std::sort(chosen.begin(), chosen.end(),
            [](const GridTarget& a, const GridTarget& b) { return a.token < b.token; });
  return chosen;
}

}  // namespace deeptail
