#include "text/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/json.h"
#include "deeptail/core.h"
#include "text/unicode.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxEntry = 1024;  // bytes; every way to cut an entry in two is tried
constexpr std::string_view kMetaspace = "\u2581";

// Contractions and letters as all of these have them; they differ in how many digits go together.
constexpr std::string_view kThreeDigits =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kOneDigit = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
                                       R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kEveryDigit = R"(\p{N})";

// GGUF files do not say that a model's own tokenizer puts text into NFC, or takes whole words first.
struct NamedPreTokenizer {
  std::string_view name, first, second;  // patterns; second may be ""
  bool nfc = false, ignore_merges = false;
};
const std::array<NamedPreTokenizer, 10> kPreTokenizers = {{
    {"gpt-2", kByteLevelPattern, ""},
    {"phi-2", kByteLevelPattern, ""},
    {"mpt", kByteLevelPattern, "", true},
    {"olmo", kByteLevelPattern, "", true},
    {"llama-bpe", kThreeDigits, "", false, true},
    {"llama3", kThreeDigits, "", false, true},
    {"llama-v3", kThreeDigits, "", false, true},
    {"qwen2", kOneDigit, "", true},
    {"smollm", kEveryDigit, kByteLevelPattern},
    {"starcoder", kEveryDigit, kByteLevelPattern},
}};

TokenType type_of_token(const Vocabulary& v, std::size_t i) {
  return v.types.empty() ? TokenType::normal : v.types[i];
}

void check_vocabulary(const Vocabulary& v, const std::string& where) {
  const auto check_length = [&](std::size_t n, const char* what) {
    if (n != v.tokens.size())
      throw InputError("{}: {} tokens and {} {}; expected one for each token", where, v.tokens.size(), n,
                       what);
  };
  if (v.tokens.empty()) throw InputError("{}: no tokens; expected at least one", where);
  if (!v.types.empty()) check_length(v.types.size(), "types");
  if (v.kind == Vocabulary::Kind::sentencepiece) check_length(v.scores.size(), "scores");
  for (std::size_t i = 0; i < v.tokens.size(); ++i) {
    const std::string& text = v.tokens[i];
    if (valid_utf8_prefix(text) != text.size() || text.size() > kMaxEntry)
      throw InputError("{}: token {} is \"{}\"; expected UTF-8 of at most {} bytes", where, i,
                       printable(text), kMaxEntry);
    if (v.kind == Vocabulary::Kind::sentencepiece && std::isnan(v.scores[i]))
      throw InputError("{}: the score of token {} is not a number", where, i);
  }
  if (v.bos && (*v.bos < 0 || static_cast<std::size_t>(*v.bos) >= v.tokens.size()))
    throw InputError("{}: the token before a text is {}; expected 0 to {}", where, *v.bos,
                     v.tokens.size() - 1);
}

void add_entries(const Vocabulary& v, TokenizerSpec& spec) {
  for (std::size_t i = 0; i < v.tokens.size(); ++i) {
    const std::string& text = v.tokens[i];
    const TokenType type = type_of_token(v, i);
    const auto id = static_cast<TokenId>(i);
    if (text.empty() || type == TokenType::unused) continue;
    if (type == TokenType::normal || type == TokenType::byte || type == TokenType::unknown)
      spec.model.vocab.emplace_back(text, id);
    if (type == TokenType::control || type == TokenType::user_defined || type == TokenType::unknown)
      spec.added.push_back({.id = id, .content = text, .special = type != TokenType::user_defined});
    if (type == TokenType::unknown && !spec.model.unk_token) spec.model.unk_token = text;
  }
}

// Every way to make a token of two others, ranked by its score: equal scores have equal ranks, so that the
// leftmost goes first.
void add_merges_by_score(const Vocabulary& v, const VocabIds& ids, ModelSpec& model) {
  std::vector<float> scores(v.scores);
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  const auto is_normal = [&](TokenId id) {
    return type_of_token(v, static_cast<std::size_t>(id)) == TokenType::normal;
  };
  for (const auto& [text, id] : ids) {
    if (!is_normal(id)) continue;
    const float score = v.scores[static_cast<std::size_t>(id)];
    const auto place = std::lower_bound(scores.begin(), scores.end(), score, std::greater<>());
    for (std::size_t cut = code_point_at(text, 0).length; cut < text.size();
         cut += code_point_at(text, cut).length) {
      const auto left = ids.find(text.substr(0, cut)), right = ids.find(text.substr(cut));
      if (left == ids.end() || right == ids.end() || !is_normal(left->second) || !is_normal(right->second))
        continue;
      model.merges.push_back({left->second, right->second, id});
      model.ranks.push_back(static_cast<std::uint32_t>(place - scores.begin()));
    }
  }
}

void fill_sentencepiece(const Vocabulary& v, TokenizerSpec& spec) {
  add_merges_by_score(v, ids_of(spec.model), spec.model);
  spec.model.byte_fallback = true;
  spec.model.fuse_unk = true;
  std::vector<Normalizer::Step> steps;
  if (v.add_space_prefix) steps.push_back(Prepend{std::string(kMetaspace)});
  steps.push_back(Replace{" ", std::string(kMetaspace)});
  spec.normalizer = Normalizer(std::move(steps));
  std::vector<TextDecoder::Step> joined;
  if (v.add_space_prefix) joined.push_back(DecodeStrip{" ", 1, 0});
  spec.decoder =
      TextDecoder({DecodeReplace{std::string(kMetaspace), " "}, DecodeByteFallback{}}, std::move(joined));
}

void fill_byte_level(const Vocabulary& v, const std::string& where, TokenizerSpec& spec) {
  const auto named = std::find_if(kPreTokenizers.begin(), kPreTokenizers.end(),
                                  [&](const auto& p) { return p.name == v.pre_tokenizer; });
  if (named == kPreTokenizers.end())
    throw InputError("{}: the pre-tokenizer is \"{}\"; supported are {}", where, printable(v.pre_tokenizer),
                     names_of_pre_tokenizers());
  const VocabIds ids = ids_of(spec.model);
  for (std::size_t i = 0; i < v.merges.size(); ++i) {
    const Where place = [&] { return fmt::format("{}: merge {}", where, i); };
    const auto parts = merge_parts(v.merges[i]);
    if (!parts)
      throw InputError("{} is \"{}\"; expected two tokens with a space between them", place(),
                       printable(v.merges[i]));
    spec.model.merges.push_back(merge_of(parts->first, parts->second, ids, place));
  }
  spec.model.ignore_merges = named->ignore_merges;
  if (named->nfc) spec.normalizer = Normalizer({Nfc{}});
  spec.pre_tokenizer.bytes = true;
  for (const std::string_view pattern : {named->first, named->second})
    if (!pattern.empty())
      spec.pre_tokenizer.steps.push_back(
          {.split = Split{Regex::from_pattern(pattern, where), SplitBehavior::isolated}});
  spec.decoder = TextDecoder({DecodeByteLevel{}}, {});
}

}  // namespace

std::string names_of_pre_tokenizers() {
  std::string names;
  for (const NamedPreTokenizer& named : kPreTokenizers)
    names += (names.empty() ? "" : ", ") + std::string(named.name);
  return names;
}

TokenizerSpec spec_of(const Vocabulary& vocabulary, const std::string& where) {
  check_vocabulary(vocabulary, where);
  TokenizerSpec spec;
  add_entries(vocabulary, spec);
  if (vocabulary.kind == Vocabulary::Kind::sentencepiece)
    fill_sentencepiece(vocabulary, spec);
  else
    fill_byte_level(vocabulary, where, spec);
  if (vocabulary.bos) spec.bos = {*vocabulary.bos};
  return spec;
}

}  // namespace deeptail
