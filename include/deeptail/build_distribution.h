// Distributions made for a tokenizer: the eight of the benchmark (docs/distributions.md), and tables from a text.
//
// Everything is counted and rounded in a stated way, so the same tokenizer and counts give the same file to the byte.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/load.h"
#include "deeptail/text.h"
#include "deeptail/watch.h"

namespace [[gnu::visibility("default")]] deeptail {

// How often each token occurs in some texts.
struct TokenCounts {
  std::string tokenizer_sha256;
  std::map<std::string, std::vector<std::uint64_t>> corpora;  // english, spanish, code: [d_vocab]
};
// The file that training/data.py writes: {"tokenizer_sha256": .., "counts": {"english": [..], ..}}.
TokenCounts parse_token_counts(std::string_view json, std::string_view where);

// A tokenizer as builders see it.
struct BuilderVocabulary {
  // bos: what begins every input; negative for nothing.
  BuilderVocabulary(const NamedTokenizer& tokenizer, TokenId bos);
  const Tokenizer& tokenizer;
  std::string sha256;
  TokenId bos;
  std::map<TokenId, std::string> text;  // of tokens that are whole UTF-8; special ones have none
  std::size_t d_vocab = 0;

  TokenId id_of(const std::string& token) const;  // throws InputError
};
// [d_vocab]: of a text, cut where that changes no token.
std::vector<std::uint64_t> count_tokens(const Tokenizer& tokenizer, std::size_t d_vocab,
                                        std::string_view text, ThreadPool& pool, const Watch& watch = {});

std::vector<std::string> built_distributions();  // hex, camel, colon, if, caps, english, spanish, icl
// The corpora whose counts it needs.
std::vector<std::string> corpora_of(std::string_view name);
// The file's text. Throws InputError for counts that are missing or of another tokenizer, and where the tokenizer
// has no tokens for it.
std::string build_distribution(std::string_view name, const BuilderVocabulary& vocabulary,
                               const TokenCounts& counts);

struct FromTextOptions {
  std::string name = "text", description = {};
  std::size_t length = 32;  // positions after BOS
  std::size_t top = 0;      // only so many of the most frequent tokens; 0: all
};
// Independent tokens, as frequent as in the text. counts: [d_vocab].
std::string distribution_from_counts(const BuilderVocabulary& vocabulary,
                                     std::span<const std::uint64_t> counts, const FromTextOptions& options);

}  // namespace deeptail
