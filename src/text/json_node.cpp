#include <fmt/format.h>

#include "deeptail/core.h"
#include "text/spec.h"

namespace deeptail {

std::string JsonNode::where() const {
  return path_.empty() ? std::string(file_) : fmt::format("{}: {}", file_, path_);
}

void JsonNode::fail_expected(std::string_view expected) const {
  const std::string found = printable(json_text(*value_), 60);
  throw InputError("{}: found {}; expected {}", where(), found, expected);
}

void JsonNode::expect_object() const {
  if (!value_->is_object()) fail_expected("an object");
}

bool JsonNode::has(const char* key) const {
  expect_object();
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

JsonNode JsonNode::at(const char* key) const {
  expect_object();
  const auto found = value_->find(key);
  if (found == value_->end()) throw InputError("{}: the key \"{}\" is missing", where(), key);
  return {*found, file_, path_.empty() ? key : fmt::format("{}.{}", path_, key)};
}

JsonNode JsonNode::at(std::size_t index) const {
  return {(*value_)[index], file_, fmt::format("{}[{}]", path_, index)};
}

bool JsonNode::boolean() const {
  if (!value_->is_boolean()) fail_expected("true or false");
  return value_->get<bool>();
}

const std::string& JsonNode::string() const {
  if (!value_->is_string()) fail_expected("a string");
  return value_->get_ref<const std::string&>();
}

TokenId JsonNode::token_id() const {
  if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() > INT32_MAX)
    fail_expected(fmt::format("an integer from 0 to {}", INT32_MAX));
  return value_->get<TokenId>();
}

std::size_t JsonNode::array_size() const {
  if (!value_->is_array()) fail_expected("an array");
  return value_->size();
}

}  // namespace deeptail
