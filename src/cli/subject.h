// What a command is about: a model and the distribution of its inputs.
#pragma once

#include <optional>
#include <string>

#include "cli/tokens.h"
#include "deeptail/estimators.h"
#include "deeptail/inputs.h"
#include "deeptail/model.h"

namespace deeptail::cli {

struct Subject {
  Transformer model;
  std::optional<NamedTokenizer> tokenizer;
  Distribution dist;
  Provenance provenance;
};
// By names or paths. Throws InputError when they do not fit together.
Subject load_subject(const std::string& model, const std::string& dist);

}  // namespace deeptail::cli
