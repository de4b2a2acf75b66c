// The whole vocabulary at once: how likely each token is to be said after inputs of a law of independent tokens
// (docs/tokensplit.md). All tokens share first draws, one scan, and draws in which what leads to the rare ones is
// planted; only those that these do not reach well are asked about one by one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deeptail/methods.h"

namespace [[gnu::visibility("default")]] deeptail {

struct AllTokensConfig {
  double budget = 0.0;  // forward-pass equivalents; 0: all_tokens_budget()
  std::uint64_t seed = 1;
  // Tokens whose probability is thought to lie between these are worked for. Others have a row where they come by.
  double above = 1e-8, below = 1.0;
  void validate() const;
};
// The default budget: 2.5e7, and for large models as many passes as 4e14 flops are, but no fewer than 1e5; on a GPU
// 1.6 times that.
double all_tokens_budget(const ModelConfig& config, const Distribution& dist, Device device = Device::kCpu);

struct AllTokens {
  // Of tokens whose estimate lies within the bounds, the likeliest first. method: "mc" where the token was counted in
  // plain draws (diagnostics count and samples), "shared" where shared draws with weights say it, else "tokensplit".
  std::vector<Estimate> rows = {};
  std::vector<Estimate> outside = {};  // of tokens that were seen, and lie outside; by id
  std::size_t unseen = 0;              // tokens that were never said
  double log_unseen_high = 0.0;        // the 95 % bound of each of those, alone
  // The plain draws: samples [first, first + samples) of the seed, as truth numbers them.
  std::uint64_t seed = 0, first = 0, samples = 0;
  std::vector<std::uint64_t> counts = {};  // [d_vocab]
  Cost cost = {};
  bool stopped = false;  // the watch said so: rows are of what was drawn until then
};

// The watch is told forward-pass equivalents. Rows are without provenance and settings. Throws InputError for a law with
// fewer than two positions that vary, and where the scan does not fit into memory.
AllTokens estimate_all(const Transformer& model, const Distribution& dist, const AllTokensConfig& config,
                       ThreadPool& pool, const Watch& watch = {}, Device device = Device::kCpu);
// The same with rows that say what they were made from and with. Throws InputError for a law whose tokens are not
// independent of each other, too.
AllTokens estimate_all(const LoadedModel& model, const InputLaw& law, const AllTokensConfig& config,
                       ThreadPool& pool, const Watch& watch = {}, Device device = Device::kCpu);

// As the method all-tokens reads its settings. Throws InputError for those that it does not have or that do not fit.
struct AllTokensAsked {
  AllTokensConfig config = {};
  Device device = Device::kCpu;
};
AllTokensAsked read_all_tokens(const std::vector<Setting>& settings);

// What is known of one token, wherever it lies: its row or, where it was never said, p = 0 with the bound.
Estimate estimate_of(const AllTokens& all, TokenId token);
// All but the rows, as `deeptail estimate --all --json` ends: how many there are, and what is known of the others.
std::string rest_json(const AllTokens& all);

}  // namespace deeptail
