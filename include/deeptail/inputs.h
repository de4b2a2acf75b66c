// Input distributions: which token sequences a model is asked about, and how likely each is.
//
// A distribution is a frozen file (docs/distributions.md): every position names a table of (token id,
// probability), and positions are independent. Probabilities are kept as whole multiples of 2^-64 that sum to
// exactly 1, so sampling has no rounding at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/core.h"
#include "deeptail/model.h"

namespace [[gnu::visibility("default")]] deeptail {

// The tokens that one kind of position can hold. Immutable.
class TokenTable {
 public:
  // ids: distinct, in any order; probabilities: their own, summing to 1 within 1e-6, none too small to be
  // drawn. Throws InputError, beginning with `where`.
  TokenTable(std::string name, std::vector<TokenId> ids, std::vector<double> probabilities,
             std::string_view where);

  const std::string& name() const { return name_; }
  std::size_t size() const { return ids_.size(); }
  const std::vector<TokenId>& ids() const { return ids_; }  // [size], ascending
  // The token of u: token i covers (last_unit(i - 1), last_unit(i)] of the 2^64 values of u.
  TokenId draw(std::uint64_t u) const {
    std::size_t i = guide_[u >> guide_shift_];
    while (last_unit_[i] < u) ++i;
    return ids_[i];
  }
  std::uint64_t last_unit(std::size_t i) const { return last_unit_[i]; }
  // How draw() finds it: where to start looking, by the top bits of u.
  const std::vector<std::uint32_t>& guide() const { return guide_; }
  int guide_shift() const { return guide_shift_; }
  double probability(std::size_t i) const;      // what draw() gives ids()[i], as the nearest double
  double log_probability(TokenId token) const;  // minus infinity for a token that is not in the table
  double entropy() const;                       // in nats

 private:
  std::string name_;
  std::vector<TokenId> ids_;              // [size]
  std::vector<std::uint64_t> last_unit_;  // [size], ascending; the last one is 2^64 - 1
  std::vector<std::uint32_t> guide_;      // [2^bits]
  int guide_shift_ = 63;
};

struct Distribution {
  std::string name, description;
  std::string sha256;  // of the file's bytes (with tokens as text, and the tokenizer's hash); in every result
  std::size_t d_vocab = 0;
  std::string tokenizer_sha256;  // of the tokenizer.json that the ids belong to; "": the file does not say
  std::vector<TokenTable> tables;
  std::vector<std::size_t> positions;  // [length]: index into tables

  std::size_t length() const { return positions.size(); }
  const TokenTable& table(std::size_t position) const { return tables[positions[position]]; }
  // The tokens that each position can hold, for FirstLayerTable.
  std::vector<std::vector<TokenId>> support() const;
  double log_probability(std::span<const TokenId> tokens) const;  // of a whole sequence: [length]
};

// Positions that can hold more than one token, ascending.
std::vector<std::size_t> free_positions(const Distribution& dist);
// Throws InputError when there are none: all inputs are the same.
void check_varies(const Distribution& dist);

// folder: where the tokenizer.json of tokens given as text is looked for; "": such tokens are refused.
Distribution parse_distribution(std::string_view json, std::string_view where, std::string_view folder = "");

// A name (hex, or neox-digits/hex for one in a folder of its own) is looked for in
// $DEEPTAIL_HOME/distributions, ./distributions, and beside the program; a file's path is taken as it is.
std::string find_distribution(const std::string& name_or_path);
Distribution load_distribution(const std::string& name_or_path);
std::vector<std::string> list_distributions();  // files found in those places and one folder further

// Throws InputError unless the model can read these inputs: length within n_ctx, a vocabulary of the same
// size, and the same tokenizer. tokenizer_sha256 "": the model has none, and only sizes are compared.
void check_fits(const Distribution& dist, const ModelConfig& config, std::string_view tokenizer_sha256);

// Sample number `index` of the seed: always the same, whoever asks and in whatever order. tokens: [length].
void sample(const Distribution& dist, std::uint64_t seed, std::uint64_t index, std::span<TokenId> tokens);
// Samples [first, first + n) into tokens: [n, length].
void sample_range(const Distribution& dist, std::uint64_t seed, std::uint64_t first, ThreadPool& pool,
                  std::span<TokenId> tokens);

}  // namespace deeptail
