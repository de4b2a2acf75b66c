// A constructed problem's score as a sum of hinges, of the sum of units and of codes of the lock's tokens.
//
// The threshold lies half a unit below the row's: score = slope (units - threshold + 1/2) / kUnitsPerSd, which
// has the sign of the problem's own, and is never 0.
#pragma once

#include <span>
#include <vector>

#include "problem.h"

namespace deeptail::modes {

// out max(0, units * sum + codes . code + constant), whose argument is at least 1 or at most -1 for every input.
struct Neuron {
  double units = 0.0;
  std::vector<double> codes = {};  // [positions of the lock * code_width]
  double constant = 0.0;
  double out = 0.0;
};

// A token of mode m has as its code 1 and then the bits of m, as 1 and -1; every other token has zeros.
std::size_t code_width(const Lock& lock);
double code(std::size_t mode, std::size_t i);

// Of locks with one mode, or with pairs whose single tokens all lead to the same row's score. Throws
// std::invalid_argument for others.
std::vector<Neuron> lock_neurons(const Problem& problem);

}  // namespace deeptail::modes
