// The symbols that byte-pair encoding of a piece starts from: its bytes, or its characters.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "deeptail/text.h"

namespace deeptail {

class Symbols {
 public:
  static constexpr TokenId kNoToken = -1;
  using ByteIds = std::array<TokenId, 256>;  // kNoToken: the vocabulary has no token for this byte

  struct Config {
    ByteIds byte_ids;  // of each byte; of the bytes of characters that are no token
    // With them a symbol is a character, and bytes take the place of what is not among them.
    std::optional<std::unordered_map<char32_t, TokenId>> characters = {};
    std::optional<TokenId> unknown = {};  // takes the place of what has no token
    bool fuse_unknown = false;            // one for neighbours that have none
  };
  explicit Symbols(Config config);

  // Writes the symbols of `piece` (valid UTF-8) to out, at most one for each byte, and returns how many.
  // Throws InputError for what has no token.
  std::size_t write(std::string_view piece, TokenId* out) const;

  // Of a byte outside any character.
  TokenId of_stray_byte(unsigned char byte) const;

 private:
  template <bool kCharacters>
  std::size_t write_units(std::string_view piece, TokenId* out) const;
  TokenId of_character(char32_t c) const;
  bool write_bytes(std::string_view bytes, TokenId* out) const;
  TokenId unknown_for(std::string_view unit) const;

  Config config_;
  std::array<TokenId, 128> ascii_;  // of the characters below 128
};

}  // namespace deeptail
