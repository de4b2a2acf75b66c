// What a tokenizer is made of, checked, before it is put to work. A reader of files fills a TokenizerSpec, or a
// Vocabulary (vocabulary.h) where the file holds only that, and Tokenizer::make puts it to work.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/json_node.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"

namespace deeptail {

struct ModelSpec {
  std::vector<std::pair<std::string, TokenId>> vocab;  // entries as the file writes them
  std::vector<Merge> merges;
  std::vector<std::uint32_t> ranks = {};  // [merges]; empty: their places in the list
  bool ignore_merges = false;
  bool byte_fallback = false;                 // entries <0x00> to <0xFF> are bytes
  std::optional<std::string> unk_token = {};  // need not be in the vocabulary unless it is used
  bool fuse_unk = false;
};

struct TokenizerSpec {
  ModelSpec model;
  std::vector<AddedToken> added = {};
  Normalizer normalizer = {};
  PreTokenizer pre_tokenizer = {};
  TextDecoder decoder = {};
  std::vector<TokenId> bos = {};  // put before a text that becomes an input
};

// Entry -> id; of equal entries the first.
using VocabIds = std::unordered_map<std::string_view, TokenId>;
VocabIds ids_of(const ModelSpec& model);

// "a b"; nothing for any other number of spaces.
std::optional<std::pair<std::string_view, std::string_view>> merge_parts(std::string_view text);
// What two entries merge to. Throws InputError that begins with where().
using Where = std::function<std::string()>;
Merge merge_of(std::string_view left, std::string_view right, const VocabIds& ids, const Where& where);

// Throws InputError, beginning with `where`, for ids that are given twice or leave large gaps, and for added
// tokens that disagree with the vocabulary.
void check_ids(const ModelSpec& model, const std::vector<AddedToken>& added, const std::string& where);

// The parts of a tokenizer.json.

// `model`
ModelSpec read_model(const JsonNode& node);

// `added_tokens`, with ids that agree with the vocabulary or are new.
std::vector<AddedToken> read_added_tokens(const JsonNode& root, const ModelSpec& model);

// `normalizer`
Normalizer read_normalizer(const JsonNode& root);

// `pre_tokenizer`; null: the whole text is one piece.
PreTokenizer read_pre_tokenizer(const JsonNode& root);

// `decoder`; null: bytes of byte-level entries, and other entries as they are.
TextDecoder read_decoder(const JsonNode& root, const PreTokenizer& pre_tokenizer);

// `post_processor`: the special tokens before a text; nothing where no template speaks of them.
std::optional<std::vector<TokenId>> read_template(const JsonNode& root);

// tokenizer_config.json: the token before a text, "" for none.
std::string read_config_bos(const JsonNode& root);

}  // namespace deeptail
