// The file form deeptail-distribution-1.
#include <algorithm>
#include <map>
#include <optional>

#include "core/json.h"
#include "core/sha256.h"
#include "deeptail/inputs.h"
#include "inputs/text_tokens.h"

namespace deeptail {

namespace {

constexpr std::string_view kFormat = "deeptail-distribution-1";
constexpr std::size_t kMaxLength = 1 << 16, kMaxVocabulary = 1 << 24;

const Json& member(const Json& json, const char* key, std::string_view where) {
  const auto found = json.find(key);
  if (found == json.end()) throw InputError("{}: key \"{}\" is missing", where, key);
  return *found;
}

std::string found_text(const Json& json) { return printable(json_text(json, true)); }

std::string text_member(const Json& json, const char* key, std::string_view where) {
  const Json& value = member(json, key, where);
  if (!value.is_string())
    throw InputError("{}: key \"{}\": expected text, found {}", where, key, found_text(value));
  return value.get<std::string>();
}

std::size_t vocabulary(const Json& json, std::string_view where) {
  const Json& value = member(json, "d_vocab", where);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() < 1 ||
      value.get<std::uint64_t>() > kMaxVocabulary)
    throw InputError("{}: key \"d_vocab\": expected a whole number from 1 to {}, found {}", where,
                     kMaxVocabulary, found_text(value));
  return value.get<std::size_t>();
}

std::vector<std::string> position_names(const Json& json, std::string_view where) {
  const Json& value = member(json, "positions", where);
  if (!value.is_array() || value.empty() || value.size() > kMaxLength)
    throw InputError("{}: key \"positions\": expected an array of 1 to {} table names", where, kMaxLength);
  std::vector<std::string> names;
  for (const Json& name : value) {
    if (!name.is_string())
      throw InputError("{}: position {}: expected the name of a table, found {}", where, names.size(),
                       found_text(name));
    names.push_back(name.get<std::string>());
  }
  return names;
}

std::vector<TokenId> parse_ids(const Json& json, std::size_t d_vocab, std::string_view where) {
  const Json& value = member(json, "ids", where);
  if (!value.is_array()) throw InputError("{}: key \"ids\": expected an array of token ids", where);
  std::vector<TokenId> ids;
  for (const Json& id : value) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= d_vocab)
      throw InputError("{}: token id {}: expected 0 to d_vocab - 1 = {}", where, found_text(id), d_vocab - 1);
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

// The ids of a table, given as they are or as the texts of tokens.
std::vector<TokenId> table_ids(const Json& json, std::size_t d_vocab, TextTokens& tokens,
                               std::string_view where) {
  const auto texts = json.find("tokens");
  if (texts == json.end()) return parse_ids(json, d_vocab, where);
  if (json.contains("ids")) throw InputError("{}: expected \"ids\" or \"tokens\", found both", where);
  if (!texts->is_array()) throw InputError("{}: key \"tokens\": expected an array of texts", where);
  std::vector<TokenId> ids;
  for (const Json& text : *texts) {
    if (!text.is_string())
      throw InputError("{}: key \"tokens\": expected texts, found {}", where, found_text(text));
    ids.push_back(tokens.id_of(text.get_ref<const std::string&>(), where));
    if (static_cast<std::size_t>(ids.back()) >= d_vocab)
      throw InputError("{}: token \"{}\" has id {}: expected 0 to d_vocab - 1 = {}", where,
                       printable(text.get_ref<const std::string&>()), ids.back(), d_vocab - 1);
  }
  return ids;
}

// The tokens' ids are part of what the distribution is, so their tokenizer is part of its hash.
void add_tokenizer(Distribution& dist, const TextTokens& tokens, std::string_view text,
                   std::string_view where) {
  if (tokens.sha256().empty()) return;
  if (!dist.tokenizer_sha256.empty() && dist.tokenizer_sha256 != tokens.sha256())
    throw InputError("{}: key \"tokenizer_sha256\": expected that of the tokenizer it names, {}", where,
                     tokens.sha256());
  dist.tokenizer_sha256 = tokens.sha256();
  dist.sha256 = sha256_hex(fmt::format("{}{}", text, tokens.sha256()));
}

std::vector<double> parse_probabilities(const Json& json, std::string_view where) {
  const Json& value = member(json, "probabilities", where);
  if (!value.is_array()) throw InputError("{}: key \"probabilities\": expected an array of numbers", where);
  std::vector<double> probabilities;
  for (const Json& p : value) {
    if (!p.is_number()) throw InputError("{}: probability {}: expected a number", where, found_text(p));
    probabilities.push_back(p.get<double>());
  }
  return probabilities;
}

// "hex.json: table "hex" (position 1 and 31 more)": a mistake in a table is a mistake at its positions.
std::string table_place(const std::string& name, const std::vector<std::string>& positions,
                        std::string_view where) {
  const auto first = std::find(positions.begin(), positions.end(), name);
  const auto uses = std::count(positions.begin(), positions.end(), name);
  if (uses == 0) return fmt::format("{}: table \"{}\" (used by no position)", where, printable(name));
  return fmt::format("{}: table \"{}\" (position {}{})", where, printable(name), first - positions.begin(),
                     uses == 1 ? "" : fmt::format(" and {} more", uses - 1));
}

}  // namespace

Distribution parse_distribution(std::string_view text, std::string_view where, std::string_view folder) {
  const Json json = parse_json(text, where);
  if (!json.is_object()) throw InputError("{}: expected a JSON object", where);
  const std::string format = text_member(json, "format", where);
  if (format != kFormat)
    throw InputError("{}: key \"format\": expected \"{}\", found \"{}\"", where, kFormat, printable(format));
  Distribution dist;
  dist.sha256 = sha256_hex(text);
  dist.name = text_member(json, "name", where);
  if (json.contains("description")) dist.description = text_member(json, "description", where);
  if (json.contains("tokenizer_sha256")) dist.tokenizer_sha256 = text_member(json, "tokenizer_sha256", where);
  if (!dist.tokenizer_sha256.empty() && !is_sha256_hex(dist.tokenizer_sha256))
    throw InputError("{}: key \"tokenizer_sha256\": expected 64 lower-case hex digits", where);
  dist.d_vocab = vocabulary(json, where);
  TextTokens tokens(folder, json.contains("tokenizer") ? text_member(json, "tokenizer", where) : "", where);

  const std::vector<std::string> names = position_names(json, where);
  const Json& tables = member(json, "tables", where);
  if (!tables.is_object()) throw InputError("{}: key \"tables\": expected an object of named tables", where);
  std::map<std::string, std::size_t> index;
  for (const auto& [name, table] : tables.items()) {
    const std::string place = table_place(name, names, where);
    if (!table.is_object())
      throw InputError("{}: expected an object with \"ids\" or \"tokens\" and \"probabilities\", found {}",
                       place, found_text(table));
    index[name] = dist.tables.size();
    std::vector<TokenId> ids = table_ids(table, dist.d_vocab, tokens, place);
    std::vector<double> probabilities = parse_probabilities(table, place);
    dist.tables.emplace_back(name, std::move(ids), std::move(probabilities), place);
  }
  for (std::size_t position = 0; position < names.size(); ++position) {
    const auto found = index.find(names[position]);
    if (found == index.end())
      throw InputError("{}: position {}: there is no table named \"{}\"", where, position,
                       printable(names[position]));
    dist.positions.push_back(found->second);
  }
  add_tokenizer(dist, tokens, text, where);
  return dist;
}

}  // namespace deeptail
