// How a text is rewritten before it is cut into pieces.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/regex.h"

namespace deeptail {

struct Nfc {};
struct Prepend {  // before every text that is not empty
  std::string text;
};
struct Replace {
  std::variant<std::string, Regex> pattern;
  std::string content;
};

class Normalizer {
 public:
  using Step = std::variant<Nfc, Prepend, Replace>;

  Normalizer() = default;
  explicit Normalizer(std::vector<Step> steps) : steps_(std::move(steps)) {}

  bool empty() const { return steps_.empty(); }
  // Whether what is at the beginning of a text was there before: NFC, and one character for another.
  bool keeps_places() const;

  // `text` must be valid UTF-8. Throws InputError for steps that make a text many times as long.
  std::string apply(std::string_view text) const;

 private:
  std::vector<Step> steps_;
};

// Every `from` in `text`, which need not be UTF-8. Throws InputError for a result longer than `limit`.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to, std::size_t limit);

// How long a text of `bytes` may become: longer than any sensible file asks for.
std::size_t rewritten_limit(std::size_t bytes);

}  // namespace deeptail
