// A tokenizer and counts of its tokens, as builders see them.
#include <algorithm>
#include <cctype>

#include "core/json_node.h"
#include "core/memory.h"
#include "deeptail/build_distribution.h"
#include "text/unicode.h"

namespace deeptail {

namespace {

constexpr std::size_t kLargestVocabulary = 1 << 24;
constexpr std::size_t kPiece = 1 << 18;  // bytes that are encoded at once, about

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// Between a single line's end and text, where no pre-tokenizer makes one piece of both sides.
bool starts_afresh(std::string_view text, std::size_t at) {
  if (at == text.size()) return true;
  return at > 1 && text[at - 1] == '\n' && !is_space(text[at - 2]) && !is_space(text[at]);
}

std::vector<std::string_view> pieces_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = std::min(text.size(), begin + kPiece);
    while (!starts_afresh(text, end)) ++end;
    pieces.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

}  // namespace

BuilderVocabulary::BuilderVocabulary(const NamedTokenizer& named, TokenId bos_id)
    : tokenizer(named.tokenizer), sha256(named.sha256), bos(bos_id), d_vocab(named.tokenizer.vocab_size()) {
  for (std::size_t i = 0; i < d_vocab; ++i) {
    const auto id = static_cast<TokenId>(i);
    if (id == bos || tokenizer.is_special(id)) continue;
    std::string token;
    try {
      token = tokenizer.bytes_of(id);
    } catch (const InputError&) {
      continue;  // a gap in the vocabulary
    }
    if (!token.empty() && valid_utf8_prefix(token) == token.size()) text.emplace(id, std::move(token));
  }
}

TokenId BuilderVocabulary::id_of(const std::string& token) const {
  if (const auto id = tokenizer.id_of(token); id && text.contains(*id)) return *id;
  throw InputError("the tokenizer has no token \"{}\", which the distribution is made with",
                   printable(token));
}

TokenCounts parse_token_counts(std::string_view text, std::string_view where) {
  const Json document = parse_json(text, where);
  const JsonNode json(document, where);
  TokenCounts counts{.tokenizer_sha256 = json.at("tokenizer_sha256").sha256(), .corpora = {}};
  const JsonNode corpora = json.at("counts");
  corpora.expect_object();
  for (const auto& [name, value] : corpora.value().items()) {
    const JsonNode corpus = corpora.at(name.c_str());
    if (!value.is_array() || value.empty() || value.size() > kLargestVocabulary)
      corpus.fail_expected("an array with a count for every token");
    std::vector<std::uint64_t>& of = counts.corpora[name];
    of.reserve(value.size());
    for (std::size_t i = 0; i < value.size(); ++i)
      of.push_back(corpus.element(i).count(0, std::uint64_t{1} << 52));
  }
  return counts;
}

std::vector<std::uint64_t> count_tokens(const Tokenizer& tokenizer, std::size_t d_vocab,
                                        std::string_view text, ThreadPool& pool, const Watch& watch) {
  const std::vector<std::string_view> pieces = pieces_of(text);
  check_memory("counting tokens", static_cast<double>(pool.size() * d_vocab * sizeof(std::uint64_t)),
               "take fewer threads");
  std::vector<std::vector<std::uint64_t>> of_worker(pool.size(), std::vector<std::uint64_t>(d_vocab, 0));
  for (std::size_t first = 0; first < pieces.size(); first += pool.size()) {
    pool.for_each_block(std::min(pool.size(), pieces.size() - first),
                        [&](std::size_t block, std::size_t worker) {
                          for (const TokenId id : tokenizer.encode(pieces[first + block]))
                            ++of_worker[worker][static_cast<std::size_t>(id)];
                        });
    if (!goes_on(watch, progress_of(first, pieces.size()))) break;
  }
  for (std::size_t w = 1; w < of_worker.size(); ++w)
    for (std::size_t i = 0; i < d_vocab; ++i) of_worker[0][i] += of_worker[w][i];
  return std::move(of_worker[0]);
}

}  // namespace deeptail
