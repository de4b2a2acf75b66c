#include "inputs/distribution_json.h"

#include <unordered_map>

#include "core/sha256.h"
#include "inputs/text_tokens.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxLength = 1 << 16, kMaxVocabulary = 1 << 24;

// Where a table is used.
struct TableUses {
  std::size_t first = 0, count = 0;
};
using UsesByName = std::unordered_map<std::string, TableUses>;

UsesByName uses_of(const std::vector<std::string>& positions) {
  UsesByName uses;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    TableUses& table = uses[positions[i]];
    if (table.count++ == 0) table.first = i;
  }
  return uses;
}

// The ids of a table, given as they are or as the texts of tokens.
std::vector<TokenId> table_ids(const JsonNode& table, std::size_t d_vocab, TextTokens& tokens) {
  if (!table.has("tokens")) return table.at("ids").token_ids(d_vocab);
  if (table.has("ids")) throw InputError("{}: expected \"ids\" or \"tokens\", found both", table.where());
  std::vector<TokenId> ids;
  const JsonNode texts = table.at("tokens");
  for (std::size_t i = 0; i < texts.array_size(); ++i) {
    const JsonNode text = texts.element(i);
    ids.push_back(tokens.id_of(text.text(), table.where()));
    if (static_cast<std::size_t>(ids.back()) >= d_vocab)
      throw InputError("{}: token \"{}\" has id {}: expected 0 to d_vocab - 1 = {}", table.where(),
                       printable(text.text()), ids.back(), d_vocab - 1);
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

// "hex.json: table "hex" (position 1 and 31 more)": a mistake in a table is a mistake at its positions.
std::string table_place(const std::string& name, const UsesByName& uses, std::string_view where) {
  const auto found = uses.find(name);
  if (found == uses.end())
    return fmt::format("{}: table \"{}\" (used by no position)", where, printable(name));
  const auto [first, count] = found->second;
  return fmt::format("{}: table \"{}\" (position {}{})", where, printable(name), first,
                     count == 1 ? "" : fmt::format(" and {} more", count - 1));
}

std::vector<std::string> position_names(const JsonNode& node) {
  if (!node.value().is_array() || node.value().empty() || node.value().size() > kMaxLength)
    throw InputError("{}: expected an array of 1 to {} table names", node.where(), kMaxLength);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < node.array_size(); ++i) names.push_back(node.element(i).text());
  return names;
}

}  // namespace

Distribution parse_distribution(std::string_view text, std::string_view where, std::string_view folder) {
  const Json document = parse_json(text, where);
  const JsonNode json(document, where);
  if (const JsonNode format = json.at("format"); format.text() != kTablesFormat)
    format.fail_expected(fmt::format("\"{}\"", kTablesFormat));
  return read_distribution(json, text, where, folder);
}

Distribution read_distribution(const JsonNode& json, std::string_view text, std::string_view where,
                               std::string_view folder) {
  Distribution dist;
  dist.sha256 = sha256_hex(text);
  dist.name = json.at("name").text();
  if (json.has("description")) dist.description = json.at("description").text();
  if (json.has("tokenizer_sha256") && !json.at("tokenizer_sha256").text().empty())
    dist.tokenizer_sha256 = json.at("tokenizer_sha256").sha256();
  dist.d_vocab = json.at("d_vocab").count(1, kMaxVocabulary);
  TextTokens tokens(folder, json.has("tokenizer") ? json.at("tokenizer").text() : "", where);

  const std::vector<std::string> names = position_names(json.at("positions"));
  const UsesByName uses = uses_of(names);
  const JsonNode tables = json.at("tables");
  tables.expect_object();
  std::unordered_map<std::string, std::size_t> index;
  for (const auto& [name, value] : tables.value().items()) {
    const std::string place = table_place(name, uses, where);
    const JsonNode table(value, place);
    index[name] = dist.tables.size();
    std::vector<TokenId> ids = table_ids(table, dist.d_vocab, tokens);
    dist.tables.emplace_back(name, std::move(ids), table.at("probabilities").numbers(), place);
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
