// How tokens become text again.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace deeptail {

struct DecodeReplace {
  std::string from, to;
};
struct DecodeByteFallback {};  // <0x41> is the byte 0x41
struct DecodeByteLevel {};     // entries are written in the byte alphabet; others stand for themselves
struct DecodeStrip {           // up to `start` times from the front, `stop` times from the end
  std::string content;
  std::size_t start = 0, stop = 0;
};
struct DecodeMetaspace {
  std::string replacement;  // a space, or nothing in the first token
  bool drop_at_start = true;
};

class TextDecoder {
 public:
  using Step = std::variant<DecodeReplace, DecodeByteFallback, DecodeByteLevel, DecodeStrip, DecodeMetaspace>;

  TextDecoder() = default;
  // each: on every token; joined: on the whole text, as on one token.
  TextDecoder(std::vector<Step> each, std::vector<Step> joined)
      : each_(std::move(each)), joined_(std::move(joined)) {}

  enum class Kind { entry, added };  // an added token is never written in the byte alphabet
  // What a token stands for; the first one of a text may lose its space.
  std::string token(std::string_view entry, Kind kind, bool first) const;
  // Whether token() depends on `first`.
  bool first_differs() const;
  // Whether finish() takes no more from a text than the one space at its start.
  bool by_token() const;
  // The text, from its tokens joined.
  std::string finish(std::string text) const;

 private:
  std::vector<Step> each_, joined_;
};

}  // namespace deeptail
