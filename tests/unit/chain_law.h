// A law whose inputs have unequal lengths: a Markov chain that ends when it says so.
#pragma once

#include <cmath>
#include <vector>

#include "core/random.h"
#include "deeptail/law.h"

namespace deeptail {

// Tokens 0 to 3, then kEnd. The next token is the last one again with chance kStay, the end with chance
// kStop, any of the four otherwise; after max_length - 1 tokens the end comes in any case. Part i draws token
// i.
class ChainLaw final : public InputLaw {
 public:
  static constexpr TokenId kEnd = 4;
  static constexpr double kStay = 0.3, kStop = 0.15;

  explicit ChainLaw(std::size_t max_length, std::size_t d_vocab)
      : facts_{.name = "chain",
               .sha256 = "",
               .d_vocab = d_vocab,
               .n_parts = max_length - 1,
               .max_length = max_length} {}

  const LawFacts& facts() const override { return facts_; }
  std::size_t first_position(std::size_t part) const override { return part; }
  void make(std::span<const std::uint64_t> parts, Inputs& out, ThreadPool&) const override {
    const std::size_t n = parts.size() / facts_.n_parts;
    out.resize(n, facts_.max_length);
    for (std::size_t i = 0; i < n; ++i) {
      const auto row = out.row(i);
      std::fill(row.begin(), row.end(), 0);
      std::size_t length = 0;
      while (length < facts_.n_parts) {
        row[length] =
            next(length == 0 ? -1 : row[length - 1], unit_double(parts[i * facts_.n_parts + length]));
        if (row[length++] == kEnd) break;
      }
      if (row[length - 1] != kEnd) row[length++] = kEnd;
      out.lengths[i] = static_cast<std::uint32_t>(length);
    }
  }

  // Of the token after `last` (-1: of the first).
  static double probability(TokenId last, TokenId token) {
    const double stop = last < 0 ? 0.0 : kStop, stay = last < 0 ? 0.0 : kStay;
    if (token == kEnd) return stop;
    return (1.0 - stop - stay) / 4.0 + (token == last ? stay : 0.0);
  }

 private:
  static TokenId next(TokenId last, double u) {
    for (TokenId token = 0; token < kEnd; ++token)
      if ((u -= probability(last, token)) < 0.0) return token;
    return last < 0 ? kEnd - 1 : kEnd;
  }

  LawFacts facts_;
};

}  // namespace deeptail
