// What an estimate is about: a model and the distribution of its inputs.
#pragma once

#include <optional>
#include <string>

#include "deeptail/estimators.h"
#include "deeptail/inputs.h"
#include "deeptail/model.h"
#include "deeptail/text.h"

namespace deeptail {

// A model's tokenizer with the hash of its file.
struct NamedTokenizer {
  Tokenizer tokenizer;
  std::string sha256;
};
// Nothing when config.json names none.
std::optional<NamedTokenizer> tokenizer_of(const ModelConfig& config, const std::string& folder);

struct Subject {
  Transformer model;
  std::optional<NamedTokenizer> tokenizer;
  Distribution dist;
  Provenance provenance;
};
// By names or paths. Throws InputError when they do not fit together.
Subject load_subject(const std::string& model, const std::string& dist);

// Gives the estimate's triggers and positions their text.
void decode_tokens(Estimate& estimate, const std::optional<NamedTokenizer>& tokenizer);

}  // namespace deeptail
