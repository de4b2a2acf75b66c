// What a tokenizer.json says, checked, before it is put to work.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
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

// A JSON value with the file and the path that lead to it, for messages.
class JsonNode {
 public:
  JsonNode(const Json& value, std::string_view file, std::string path)
      : value_(&value), file_(file), path_(std::move(path)) {}

  const Json& value() const { return *value_; }
  std::string where() const;  // "FILE: model.vocab"

  bool has(const char* key) const;  // present and not null; this must be an object
  JsonNode at(const char* key) const;
  JsonNode at(std::size_t index) const;

  bool boolean() const;
  const std::string& string() const;
  TokenId token_id() const;
  std::size_t array_size() const;  // throws unless this is an array
  void expect_object() const;

  [[noreturn]] void fail_expected(std::string_view expected) const;

 private:
  const Json* value_;
  std::string_view file_;
  std::string path_;
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
