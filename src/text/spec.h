// What a tokenizer.json says, checked, before it is put to work.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/json_node.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/pre_tokenizer.h"

namespace deeptail {

struct ModelSpec {
  std::vector<std::pair<std::string, TokenId>> vocab;  // entries as the file writes them
  std::vector<Merge> merges;
  bool ignore_merges = false;
  bool has_unk_token = false;
};

// `model`
ModelSpec read_model(const JsonNode& node);

// `added_tokens`, with ids that agree with the vocabulary or are new.
std::vector<AddedToken> read_added_tokens(const JsonNode& root, const ModelSpec& model);

// `normalizer`: whether the text is to be put into NFC.
bool read_normalizer(const JsonNode& root);

// `pre_tokenizer`
PreTokenizer read_pre_tokenizer(const JsonNode& root);

// `post_processor` and `decoder` are not applied; kinds that mean more than special tokens and bytes are
// refused.
void check_unapplied_parts(const JsonNode& root);

}  // namespace deeptail
