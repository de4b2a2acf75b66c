// Margins of one target by the last two tokens of an input, as a model has them: their mean and spread over
// contexts, from modes_scan.
//
// File: a line "deeptail-pairs-1 <model> <distribution> <target>"; a line with the second-last and the last
// position, then lowest mean, step of means, lowest spread, step of spreads; then a line for each token of
// the last position: its id, its margin over all second-last tokens, and nothing more or its margins by
// second-last token. A margin is three characters: two digits of the mean and one of the spread, base 64
// from '0' on.
#pragma once

#include <string>
#include <vector>

#include "deeptail/inputs.h"

namespace deeptail::modes {

struct PairMargin {
  double mean = 0.0, spread = 1.0;
};

struct PairRow {
  PairMargin any = {};                     // over all second-last tokens
  std::vector<PairMargin> by_second = {};  // [tokens of the second-last position], or empty: `any` for each
};

struct PairTable {
  std::string model, dist;
  TokenId target = 0;
  std::size_t second = 0, last = 0;  // positions
  std::vector<PairRow> rows = {};    // [tokens of the last position]
};

// Throws InputError where the file does not fit the distribution.
PairTable read_pairs(const std::string& path, const Distribution& dist);
void write_pairs(const std::string& path, const PairTable& table, const Distribution& dist);

}  // namespace deeptail::modes
