// Gradients of the target logit with respect to one-hot inputs, for the tokens that a position can hold.
//
// With one-hot inputs x = onehot W_E + W_pos, so d logit / d onehot[token] = W_E[token] . g, where g is the
// gradient w.r.t. the embedding. Only positions that can change are asked for, and only tokens of their
// tables.
#pragma once

#include "deeptail/inputs.h"
#include "deeptail/model.h"

namespace deeptail {

class TokenGradients {
 public:
  TokenGradients(const Transformer& model, const Distribution& dist);

  // Those that can hold more than one token, ascending.
  const std::vector<std::size_t>& positions() const { return positions_; }
  // Of the i-th of them: index into Distribution::tables.
  std::size_t table_of(std::size_t i) const { return tables_of_[i]; }
  std::size_t largest_table() const { return largest_table_; }
  // [size]: the table's probabilities, and their natural logs.
  const std::vector<double>& prior(std::size_t table) const { return prior_[table]; }
  const std::vector<float>& log_prior(std::size_t table) const { return log_prior_[table]; }

  // out: [n, size of the table] = W_E[ids of the table] . gradients; gradients: [n, d_model].
  void scores(std::size_t table, std::size_t n, ConstRows gradients, Rows out) const {
    gemm(n, gradients, embed_[table], out);
  }

 private:
  std::vector<std::size_t> positions_, tables_of_;
  std::size_t largest_table_ = 0;
  std::vector<PackedMatrix> embed_;            // per table: [d_model, size]; none for a single token
  std::vector<std::vector<double>> prior_;     // per table
  std::vector<std::vector<float>> log_prior_;  // per table
};

// Place of a token in a table that holds it.
std::size_t place_of(const TokenTable& table, TokenId token);

}  // namespace deeptail
