// Small tokenizer.json documents for the tests: every byte is a token whose id is the byte, merges follow
// from 256.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "deeptail/text.h"
#include "text/byte_alphabet.h"

namespace deeptail {

inline std::string in_alphabet(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += alphabet_character(static_cast<unsigned char>(byte));
  return text;
}

inline Json byte_level(bool add_prefix_space = false, bool use_regex = true) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

inline Json split_json(const char* kind, std::string_view pattern, std::string_view behavior,
                       bool invert = false) {
  return {{"type", "Split"}, {"pattern", {{kind, pattern}}}, {"behavior", behavior}, {"invert", invert}};
}

inline Json sequence(std::vector<Json> parts) {
  return {{"type", "Sequence"}, {"pretokenizers", std::move(parts)}};
}

// Merges are pairs of byte strings; merges[i] makes the token 256 + i.
inline Json small_tokenizer(const std::vector<std::pair<std::string, std::string>>& merges = {}) {
  Json vocab = Json::object(), list = Json::array();
  for (int byte = 0; byte < 256; ++byte) vocab[alphabet_character(static_cast<unsigned char>(byte))] = byte;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    vocab[in_alphabet(merges[i].first + merges[i].second)] = 256 + i;
    list.push_back({in_alphabet(merges[i].first), in_alphabet(merges[i].second)});
  }
  return {{"version", "1.0"},
          {"added_tokens", Json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level()},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", list}}}};
}

inline Json added_token(TokenId id, std::string_view content, const Json& flags = Json::object()) {
  Json token = {{"id", id},        {"content", content}, {"special", false},    {"normalized", false},
                {"lstrip", false}, {"rstrip", false},    {"single_word", false}};
  token.update(flags);
  return token;
}

inline Tokenizer load_small(const Json& document) {
  return Tokenizer::parse(json_text(document), "small.json");
}

using Ids = std::vector<TokenId>;

}  // namespace deeptail
