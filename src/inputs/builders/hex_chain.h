#pragma once

#include "deeptail/build_distribution.h"
#include "inputs/builders/frozen_tables.h"

namespace deeptail {

// Long-run frequencies of the tokens of a random hex string.
Frequencies hex_frequencies(const BuilderVocabulary& vocabulary);

}  // namespace deeptail
