#include "text/decoder.h"

#include <algorithm>

#include "text/byte_alphabet.h"
#include "text/byte_token.h"
#include "text/normalizer.h"

namespace deeptail {

namespace {

// One step on one token, or on the whole text.
struct DecodeToken {
  TextDecoder::Kind kind;
  bool first;
  std::size_t limit;

  std::string operator()(const DecodeReplace& step, std::string text) const {
    return replace_all(text, step.from, step.to, limit);
  }
  std::string operator()(const DecodeByteFallback&, std::string text) const {
    const auto byte = byte_of_token(text);
    return byte ? std::string(1, static_cast<char>(*byte)) : text;
  }
  std::string operator()(const DecodeByteLevel&, std::string text) const {
    if (kind == TextDecoder::Kind::added) return text;
    auto bytes = bytes_from_alphabet(text);
    return bytes ? std::move(*bytes) : text;
  }
  std::string operator()(const DecodeStrip& step, const std::string& text) const {
    std::string_view rest = text;
    for (std::size_t i = 0; i < step.start && rest.starts_with(step.content); ++i)
      rest.remove_prefix(step.content.size());
    for (std::size_t i = 0; i < step.stop && rest.ends_with(step.content); ++i)
      rest.remove_suffix(step.content.size());
    return std::string(rest);
  }
  std::string operator()(const DecodeMetaspace& step, std::string text) const {
    return replace_all(text, step.replacement, first && step.drop_at_start ? "" : " ", limit);
  }
};

std::string run_decoder(const std::vector<TextDecoder::Step>& steps, TextDecoder::Kind kind, bool first,
                        std::string text) {
  const DecodeToken decode{kind, first, rewritten_limit(text.size())};
  for (const TextDecoder::Step& step : steps)
    text = std::visit([&](const auto& s) { return decode(s, std::move(text)); }, step);
  return text;
}

}  // namespace

std::string TextDecoder::token(std::string_view entry, Kind kind, bool first) const {
  return run_decoder(each_, kind, first, std::string(entry));
}

bool TextDecoder::first_differs() const {
  return std::any_of(each_.begin(), each_.end(), [](const Step& step) {
    const auto* metaspace = std::get_if<DecodeMetaspace>(&step);
    return metaspace != nullptr && metaspace->drop_at_start;
  });
}

bool TextDecoder::by_token() const {
  return std::all_of(joined_.begin(), joined_.end(),
                     [](const Step& step) {
                       const auto* strip = std::get_if<DecodeStrip>(&step);
                       return strip != nullptr && strip->content.size() == 1 && strip->start <= 1 &&
                              strip->stop == 0;
                     }) &&
         joined_.size() <= 1;
}

std::string TextDecoder::finish(std::string text) const {
  return run_decoder(joined_, Kind::entry, true, std::move(text));
}

}  // namespace deeptail
