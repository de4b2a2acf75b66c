// What a scan tries, and how it judges what came of it.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "inputs/planted_tables.h"

namespace deeptail {

// Positions before the last free one whose tables are the same: a token may be planted at any of them.
struct ScanGroup {
  std::vector<std::size_t> positions;
  const TokenTable* table;
};

struct Candidate {
  TokenId last = kNothing, other = kNothing;
  std::size_t group = 0;  // of `other`
  double log_prior = 0.0;
  double mean = 0.0, variance = 0.0;  // of its scores over the contexts
  double log_worth = 0.0;             // of prior * sqrt(Pr[event]): such chances have the least variance
  // What it is to be tried further for: log of sqrt(prior * Pr[event]). Next to its worth that favours tokens
  // that do much over tokens that are frequent.
  double log_promise = 0.0;

  // Pr[event] where scores are normal.
  void assess(double variance_of_scores);
};

// Fills worth and promise; each variance is drawn towards the median one, since contexts are few.
void judge(std::span<Candidate> candidates, std::size_t contexts);
void keep_best(std::vector<Candidate>& candidates, std::size_t n);  // by promise

// Pairs of the single tokens that promise most, their gains over the mean score added up: at most n.
std::vector<Candidate> promising_pairs(std::span<const Candidate> lasts, std::span<const Candidate> others,
                                       double mean_score, std::size_t n);

// Chances in proportion to worth.
using PlantWorths = std::map<Plant, double>;
PlantList plants_by(const PlantWorths& worths);

// Likewise; a token that may be planted at several positions is so at each alike.
PlantList plants_of(std::span<const Candidate> candidates, std::span<const ScanGroup> groups,
                    std::size_t last_position);

}  // namespace deeptail
