// The eight distributions of the benchmark, for any tokenizer.
#include <algorithm>
#include <functional>
#include <set>

#include "core/json.h"
#include "deeptail/build_distribution.h"
#include "inputs/builders/frozen_tables.h"
#include "inputs/builders/hex_chain.h"
#include "inputs/builders/letters.h"

namespace deeptail {

namespace {

constexpr std::size_t kTop = 1024;
using Keep = std::function<bool(const std::string&)>;

// One distribution under construction.
class Builder {
 public:
  Builder(const BuilderVocabulary& vocabulary, const TokenCounts& counts)
      : vocabulary_(vocabulary), counts_(counts) {
    tables_.add("bos", {{vocabulary.bos, 1.0}});
    tables_.repeat("bos");
  }

  std::string text(std::string_view name, std::string description) const {
    return tables_.text({.name = std::string(name),
                         .description = std::move(description),
                         .tokenizer_sha256 = vocabulary_.sha256,
                         .d_vocab = vocabulary_.d_vocab});
  }

  std::string hex() {
    add("hex", hex_frequencies(vocabulary_), 32);
    return "32 tokens of a random hex string";
  }
  std::string camel() {
    const std::set<std::string> words = {"None", "True", "False"};
    add("camel", select("code", [&](const std::string& s) { return is_camel(s) && !words.contains(s); }), 32);
    return "32 CamelCase pieces by code counts";
  }
  std::string colon() {
    add("code", code(), 32);
    constant(":");
    return "32 of the 1024 most frequent code tokens, then ':'";
  }
  std::string if_code() {
    constant(" if");
    add("code", code(), 32);
    return "' if', then 32 of the 1024 most frequent code tokens";
  }
  std::string caps() {
    add("he_she", {{vocabulary_.id_of("He"), 1.0}, {vocabulary_.id_of("She"), 1.0}}, 1);
    for (const char* word : {" screamed", ":", " \""}) constant(word);
    add("caps", select("english", is_shouted, kTop), 16);
    return "He or She, ' screamed: \"', then 16 all-caps tokens by english counts";
  }
  std::string english() {
    add("start", select("english", is_letters), 1);
    const auto word = [](const std::string& s) { return is_spaced_word(s) || is_one_of(s, ",.!?;"); };
    add("word", select("english", word), 24);
    return "a token of letters, then 24 word tokens or punctuation, by english counts";
  }
  std::string spanish() {
    add("spanish", select("spanish", is_alphabetic, kTop), 24);
    return "24 tokens of letters by spanish counts";
  }
  std::string icl() {
    const std::vector<TokenId> ids = constant_tables(" for");
    const std::string for_table = table_of(ids.front());
    bool first = true;
    for (const char letter : std::string_view("ARCTHEORY")) {
      constant(first ? std::string(1, letter) : std::string{' ', letter});
      first = false;
      tables_.repeat(for_table);
      add(fmt::format("words_{}", letter), icl_words(letter), 1);
    }
    Frequencies capitals;
    for (char c = 'A'; c <= 'Z'; ++c)
      if (const auto id = vocabulary_.tokenizer.id_of(std::string{' ', c})) capitals[*id] = 1.0;
    add("capital", std::move(capitals), 1);
    tables_.repeat(for_table);
    return "'A for ' word ... 'Y for ' word, then a capital letter and ' for'";
  }

 private:
  void add(const std::string& name, Frequencies table, std::size_t times) {
    if (table.empty())
      throw InputError("table \"{}\": the counts have no token of this vocabulary that fits", name);
    tables_.add(name, std::move(table));
    tables_.repeat(name, times);
  }
  static std::string table_of(TokenId id) { return fmt::format("token_{}", id); }
  std::vector<TokenId> constant_tables(const std::string& word) {
    const std::vector<TokenId> ids = vocabulary_.tokenizer.encode(word);
    for (const TokenId id : ids) tables_.add(table_of(id), {{id, 1.0}});
    return ids;
  }
  void constant(const std::string& word) {
    for (const TokenId id : constant_tables(word)) tables_.repeat(table_of(id));
  }

  const std::vector<std::uint64_t>& counts_of(const char* corpus) const { return counts_.corpora.at(corpus); }
  // Counts of the tokens seen whose text passes, the top most frequent of them; 0: all.
  Frequencies select(const char* corpus, const Keep& keep, std::size_t top = 0) const {
    const std::vector<std::uint64_t>& counts = counts_of(corpus);
    std::vector<TokenId> chosen;
    for (const auto& [id, text] : vocabulary_.text)
      if (counts[static_cast<std::size_t>(id)] > 0 && keep(text)) chosen.push_back(id);
    const auto count = [&](TokenId id) { return counts[static_cast<std::size_t>(id)]; };
    std::stable_sort(chosen.begin(), chosen.end(), [&](TokenId a, TokenId b) { return count(a) > count(b); });
    if (top > 0) chosen.resize(std::min(top, chosen.size()));
    Frequencies table;
    for (const TokenId id : chosen) table[id] = static_cast<double>(count(id));
    return table;
  }
  Frequencies code() const {
    return select(
        "code", [](const std::string&) { return true; }, kTop);
  }
  // Words with this letter that are more frequent in English than in Spanish, all alike.
  Frequencies icl_words(char letter) const {
    const auto lower = static_cast<char>(letter - 'A' + 'a');
    Frequencies words = select(
        "english", [&](const std::string& s) { return is_spaced_word(s) && s.size() > 4 && s[1] == lower; });
    std::erase_if(words, [&](const auto& word) {
      const auto id = static_cast<std::size_t>(word.first);
      return counts_of("english")[id] <= counts_of("spanish")[id];
    });
    for (auto& [id, frequency] : words) frequency = 1.0;
    return words;
  }

  const BuilderVocabulary& vocabulary_;
  const TokenCounts& counts_;
  FrozenTables tables_;
};

struct Recipe {
  std::string_view name;
  std::string (Builder::*make)();
  std::vector<std::string> corpora;
};
const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all = {{"hex", &Builder::hex, {}},
                                          {"camel", &Builder::camel, {"code"}},
                                          {"colon", &Builder::colon, {"code"}},
                                          {"if", &Builder::if_code, {"code"}},
                                          {"caps", &Builder::caps, {"english"}},
                                          {"english", &Builder::english, {"english"}},
                                          {"spanish", &Builder::spanish, {"spanish"}},
                                          {"icl", &Builder::icl, {"english", "spanish"}}};
  return all;
}

const Recipe& recipe_of(std::string_view name) {
  for (const Recipe& recipe : recipes())
    if (recipe.name == name) return recipe;
  throw InputError("distribution {}: expected one of {}", printable(name),
                   fmt::join(built_distributions(), ", "));
}

}  // namespace

std::vector<std::string> built_distributions() {
  std::vector<std::string> names;
  for (const Recipe& recipe : recipes()) names.emplace_back(recipe.name);
  return names;
}

std::vector<std::string> corpora_of(std::string_view name) { return recipe_of(name).corpora; }

std::string build_distribution(std::string_view name, const BuilderVocabulary& vocabulary,
                               const TokenCounts& counts) {
  const Recipe& recipe = recipe_of(name);
  if (!recipe.corpora.empty() && counts.tokenizer_sha256 != vocabulary.sha256)
    throw InputError("{}: the counts are of another tokenizer, {}; expected {}", name,
                     counts.tokenizer_sha256, vocabulary.sha256);
  for (const std::string& corpus : recipe.corpora) {
    const auto found = counts.corpora.find(corpus);
    if (found == counts.corpora.end()) throw InputError("{}: counts of {} text are missing", name, corpus);
    if (found->second.size() != vocabulary.d_vocab)
      throw InputError("{}: {} counts of {} text, expected one for each of the {} tokens", name,
                       found->second.size(), corpus, vocabulary.d_vocab);
  }
  Builder builder(vocabulary, counts);
  std::string description = (builder.*recipe.make)();
  return builder.text(name, std::move(description));
}

std::string distribution_from_counts(const BuilderVocabulary& vocabulary,
                                     std::span<const std::uint64_t> counts, const FromTextOptions& options) {
  std::vector<TokenId> seen;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0 && static_cast<TokenId>(i) != vocabulary.bos) seen.push_back(static_cast<TokenId>(i));
  if (seen.empty()) throw InputError("the text has no tokens");
  const auto count = [&](TokenId id) { return counts[static_cast<std::size_t>(id)]; };
  std::stable_sort(seen.begin(), seen.end(), [&](TokenId a, TokenId b) { return count(a) > count(b); });
  if (options.top > 0) seen.resize(std::min(options.top, seen.size()));
  Frequencies table;
  for (const TokenId id : seen) table[id] = static_cast<double>(count(id));
  FrozenTables tables;
  if (vocabulary.bos >= 0) {
    tables.add("bos", {{vocabulary.bos, 1.0}});
    tables.repeat("bos");
  }
  tables.add("text", std::move(table));
  tables.repeat("text", options.length);
  return tables.text({.name = options.name,
                      .description = options.description,
                      .tokenizer_sha256 = vocabulary.sha256,
                      .d_vocab = vocabulary.d_vocab});
}

}  // namespace deeptail
