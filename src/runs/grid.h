// The grid of a suite: every item with its id and seeds, from the files that the suite names.
#pragma once

#include <string>
#include <vector>

#include "deeptail/estimators.h"
#include "deeptail/runs.h"
#include "deeptail/truth.h"
#include "runs/suite.h"

namespace deeptail {

struct GridTarget {
  TokenId token = 0;
  std::uint64_t count = 0;  // of the truth's samples
};
// Those within the band, at most `count`, spread evenly over log q: the band is cut into slices, and each
// gives one target in turn, in an order that depends on seed and token alone. So a larger count adds targets
// to those of a smaller one. Sorted by token.
std::vector<GridTarget> choose_targets(const Truth& truth, const SuiteTargets& choice);

// The tokens that a suite names, as ids of this model, sorted. Throws InputError for what is not one token of
// it.
std::vector<TokenId> tokens_of(const SuiteTargets& targets, const ModelConfig& config,
                               const NamedTokenizer* tokenizer);

// The first 64 bits of the text's SHA-256: what seeds and orders are made of.
std::uint64_t hashed_to_number(const std::string& text);

// Model on distribution.
struct GridPair {
  std::string model_path = {}, dist_path = {};  // as the suite names them
  std::string model = {}, dist = {};            // names
  std::uint64_t samples = 0;                    // of the truth; 0 where it is not known
  std::vector<GridTarget> targets = {};
};

struct GridItem {
  std::uint32_t pair = 0, target = 0, variant = 0, replica = 0;
  std::uint32_t turn = 0;  // for dealing to shards: among items of the same method first
  std::string id = {};
};

// The same for the same model, dist, target, variant and replica, and for no others.
std::string item_id(const RunItem& item);

struct Grid {
  Suite suite = {};
  RunHeader header = {};
  std::vector<GridPair> pairs = {};
  std::vector<GridItem> items = {};  // in the order of work: what shares activations is together

  // The item with all but its estimate.
  RunItem described(const GridItem& item) const;
  bool shares_draws(const GridItem& item) const { return suite.variants[item.variant].method.shares_draws; }
  // "tokensplit dt-1l hex 310", with the variant's name where it has one.
  std::string name_of(const GridItem& item) const;
  // Of methods that share draws the same for all targets: of whatever is left, the answers are the same.
  std::uint64_t seed(const GridItem& item) const;
  std::uint64_t calibration_seed(const GridItem& item) const;  // the same for all targets and methods
};

// Reads, checks and hashes what the suite names.
Grid build_grid(Suite suite);

// Indices of the items that shard i of n (1 <= i <= n) takes: every n-th of each method's, or of its pairs and replicas
// where it answers all targets of one at once.
// only: of these methods or variants; empty: of all. Throws InputError for a name that the suite does not
// have.
std::vector<std::size_t> items_of_shard(const Grid& grid, std::size_t i, std::size_t n,
                                        std::span<const std::string> only = {});

}  // namespace deeptail
