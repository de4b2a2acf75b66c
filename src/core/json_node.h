// Reads what a JSON document says, with a sentence of its own for every way in which it may say something
// else: where, expected, found.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "deeptail/core.h"

namespace deeptail {

// A value with the file and the path that lead to it. The document and the name of the file must outlive it.
class JsonNode {
 public:
  JsonNode(const Json& value, std::string_view file, std::string path = "")
      : value_(&value), file_(file), path_(std::move(path)) {}

  const Json& value() const { return *value_; }
  std::string where() const;  // FILE: key "model.merges[3]"
  std::string found() const;  // the value, fit for a message

  // Of an object.
  void expect_object() const;
  bool has(const char* key) const;  // present and not null
  JsonNode at(const char* key) const;

  // Of an array.
  std::size_t array_size() const;
  JsonNode element(std::size_t index) const;
  std::vector<JsonNode> elements() const;
  std::vector<double> numbers() const;
  std::vector<TokenId> token_ids(std::size_t d_vocab) const;  // each within the vocabulary

  bool boolean() const;
  const std::string& text() const;
  const std::string& sha256() const;                                   // 64 lower-case hex digits
  std::uint64_t count(std::uint64_t least, std::uint64_t most) const;  // a whole number
  double number() const;                                               // finite
  TokenId token_id(std::size_t d_vocab) const;

  // Throws InputError: found this; expected that.
  [[noreturn]] void fail_expected(std::string_view expected) const;

 private:
  const Json* value_;
  std::string_view file_;
  std::string path_;
};

}  // namespace deeptail
