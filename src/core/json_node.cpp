#include "core/json_node.h"

#include "core/sha256.h"

namespace deeptail {

std::string JsonNode::where() const {
  return path_.empty() ? std::string(file_) : fmt::format("{}: key \"{}\"", file_, printable(path_));
}

std::string JsonNode::found() const { return printable(json_text(*value_, true)); }

void JsonNode::fail_expected(std::string_view expected) const {
  throw InputError("{}: expected {}, found {}", where(), expected, found());
}

void JsonNode::expect_object() const {
  if (!value_->is_object()) fail_expected("an object");
}

bool JsonNode::has(const char* key) const {
  expect_object();
  const auto member = value_->find(key);
  return member != value_->end() && !member->is_null();
}

JsonNode JsonNode::at(const char* key) const {
  expect_object();
  const auto member = value_->find(key);
  const std::string path = path_.empty() ? key : fmt::format("{}.{}", path_, key);
  if (member == value_->end()) throw InputError("{}: key \"{}\" is missing", file_, printable(path));
  return {*member, file_, path};
}

std::size_t JsonNode::array_size() const {
  if (!value_->is_array()) fail_expected("an array");
  return value_->size();
}

JsonNode JsonNode::element(std::size_t index) const {
  return {(*value_)[index], file_, fmt::format("{}[{}]", path_, index)};
}

std::vector<JsonNode> JsonNode::elements() const {
  std::vector<JsonNode> out;
  for (std::size_t i = 0; i < array_size(); ++i) out.push_back(element(i));
  return out;
}

std::vector<double> JsonNode::numbers() const {
  std::vector<double> out(array_size());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = (*value_)[i].is_number() ? (*value_)[i].get<double>() : element(i).number();
  return out;
}

std::vector<TokenId> JsonNode::token_ids(std::size_t d_vocab) const {
  std::vector<TokenId> out(array_size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = element(i).token_id(d_vocab);
  return out;
}

bool JsonNode::boolean() const {
  if (!value_->is_boolean()) fail_expected("true or false");
  return value_->get<bool>();
}

const std::string& JsonNode::text() const {
  if (!value_->is_string()) fail_expected("text");
  return value_->get_ref<const std::string&>();
}

const std::string& JsonNode::sha256() const {
  if (!is_sha256_hex(text())) fail_expected("64 lower-case hex digits");
  return text();
}

std::uint64_t JsonNode::count(std::uint64_t least, std::uint64_t most) const {
  if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() < least ||
      value_->get<std::uint64_t>() > most)
    fail_expected(fmt::format("a whole number from {} to {}", least, most));
  return value_->get<std::uint64_t>();
}

double JsonNode::number() const {
  if (!value_->is_number()) fail_expected("a number");
  return value_->get<double>();
}

TokenId JsonNode::token_id(std::size_t d_vocab) const {
  if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() >= d_vocab)
    fail_expected(fmt::format("a token id from 0 to {}", d_vocab - 1));
  return value_->get<TokenId>();
}

}  // namespace deeptail
