#include <algorithm>

#include "deeptail/patterns.h"

namespace deeptail {

bool TokenTexts::nothing_in(std::span<const TokenId> tokens) const {
  return std::all_of(tokens.begin(), tokens.end(),
                     [&](TokenId id) { return text[static_cast<std::size_t>(id)].empty(); });
}

std::string TokenTexts::continuation(std::span<const TokenId> prompt, std::span<const TokenId> tokens) const {
  bool at_start = !first.empty() && nothing_in(prompt);
  std::string out;
  for (const TokenId id : tokens) {
    const auto i = static_cast<std::size_t>(id);
    out += at_start ? first[i] : text[i];
    at_start = at_start && text[i].empty();
  }
  return out;
}

TokenTexts token_texts(const Tokenizer& tokenizer, std::size_t d_vocab) {
  if (!tokenizer.decodes_by_token())
    throw InputError(
        "the tokenizer's decoder changes a text as a whole, so that tokens have no texts of their own to "
        "look "
        "for a pattern in; supported there is a Strip of one space at the start");
  TokenTexts texts;
  texts.text.resize(d_vocab);
  texts.first.resize(d_vocab);
  bool differs = false;
  for (std::size_t i = 0; i < std::min(d_vocab, tokenizer.vocab_size()); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (!tokenizer.has(id) || tokenizer.is_special(id)) continue;
    texts.text[i] = tokenizer.bytes_of(id);
    texts.first[i] = tokenizer.decode(std::span(&id, 1));
    differs = differs || texts.first[i] != texts.text[i];
  }
  if (!differs) texts.first.clear();
  return texts;
}

}  // namespace deeptail
