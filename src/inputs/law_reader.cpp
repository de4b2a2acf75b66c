#include "inputs/law_reader.h"

#include <algorithm>
#include <filesystem>

#include "core/nearest.h"
#include "core/sha256.h"
#include "hub/safe_path.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxLawDepth = 8;

constexpr struct {
  std::string_view kind;
  std::unique_ptr<InputLaw> (*read)(LawReader& reader, const JsonNode& json);
} kTextLaws[] = {{"constant", read_constant},
                 {"pool", read_pool},
                 {"template", read_template_law},
                 {"mixture", read_mixture},
                 {"language_model", read_language_model}};

}  // namespace

std::unique_ptr<InputLaw> LawReader::read(const JsonNode& json) {
  const JsonNode kind = json.at("kind");
  std::vector<std::string> known;
  for (const auto& row : kTextLaws) {
    if (row.kind == kind.text()) return row.read(*this, json);
    known.emplace_back(row.kind);
  }
  throw InputError("{}: expected {}, found {}{}", kind.where(), fmt::join(known, ", "), kind.found(),
                   did_you_mean(kind.text(), known));
}

const LawSubject& LawReader::subject(const JsonNode& at) const {
  if (subject_ == nullptr)
    throw InputError("{}: the law is one of text, so it is made for a model; none is given", at.where());
  return *subject_;
}

const NamedTokenizer& LawReader::tokenizer(const JsonNode& at) const {
  const LawSubject& s = subject(at);
  if (!s.tokenizer)
    throw InputError("{}: the law is one of text, and model {} has no tokenizer", at.where(), s.model_name);
  return *s.tokenizer;
}

void LawReader::check_is_file(const JsonNode& name) const {
  if (folder_.empty()) throw InputError("{}: only a law in a file can name another", name.where());
}

// By its name, as find_distribution looks for it, or relative to the law's file.
std::string LawReader::law_path(const JsonNode& node) const {
  const std::string& name = node.text();
  check_is_file(node);
  return name.find('/') != name.npos || name.ends_with(".json") ? path_of(node) : find_distribution(name);
}

std::string LawReader::path_of(const JsonNode& name) const {
  check_is_file(name);
  if (!is_safe_path(name.text()))
    name.fail_expected("the name of a file in the folder of this one, or below it");
  return (std::filesystem::path(folder_) / name.text()).lexically_normal().string();
}

InputFile LawReader::file(const JsonNode& name) {
  InputFile file(path_of(name));
  note(sha256_hex(file.bytes()));
  return file;
}

std::unique_ptr<InputLaw> LawReader::law(const JsonNode& node) {
  if (depth_ + 1 >= kMaxLawDepth)
    throw InputError("{}: more than {} laws are made of each other", node.where(), kMaxLawDepth);
  if (node.value().is_object()) {
    LawReader inner(folder_, subject_, depth_ + 1);
    auto law = inner.read(node);
    note(law->facts().sha256);
    return law;
  }
  const InputFile file(law_path(node));
  const std::string inner_folder = std::filesystem::path(file.path()).parent_path().string();
  auto law =
      parse_law(file.text(), file.path(), inner_folder.empty() ? "." : inner_folder, subject_, depth_ + 1);
  note(law->facts().sha256);
  return law;
}

Distribution LawReader::distribution(const JsonNode& node) {
  Distribution dist = load_distribution(law_path(node));
  note(dist.sha256);
  return dist;
}

LawFacts LawReader::facts(const JsonNode& json, std::string_view kind) const {
  LawFacts facts;
  facts.kind = kind;
  facts.name = json.has("name") ? json.at("name").text() : std::string(kind);
  if (json.has("description")) facts.description = json.at("description").text();
  facts.d_vocab = subject(json).d_vocab;
  facts.tokenizer_sha256 = tokenizer(json).sha256;
  facts.sha256 = sha256_hex(fmt::format("{}\n{}\n{}\n{}\n", kLawFormat, json_text(json.value()),
                                        facts.tokenizer_sha256, fmt::join(made_from_, "\n")));
  return facts;
}

void LawReader::check_tokens(std::span<const TokenId> tokens, const std::string& where) const {
  for (const TokenId id : tokens)
    if (id < 0 || static_cast<std::size_t>(id) >= subject_->d_vocab)
      throw InputError("{}: token {}; model {} has 0 to {}", where, id, subject_->model_name,
                       subject_->d_vocab - 1);
}

std::vector<TokenId> LawReader::tokens_of(std::string_view text, const Bos& bos,
                                          const std::string& where) const {
  std::vector<TokenId> tokens = subject_->tokenizer->tokenizer.encode_input(text, bos);
  if (tokens.empty())
    throw InputError("{}: the prompt is empty, and no token goes before it; expected at least one token",
                     where);
  check_tokens(tokens, where);
  return tokens;
}

void check_same_tokens(const InputLaw& law, const LawSubject& subject, const std::string& where) {
  const LawFacts& facts = law.facts();
  if (facts.d_vocab != subject.d_vocab)
    throw InputError("{}: law {} is for a vocabulary of {} tokens, but model {} has {}", where,
                     printable(facts.name), facts.d_vocab, subject.model_name, subject.d_vocab);
  if (subject.tokenizer && !facts.tokenizer_sha256.empty() &&
      facts.tokenizer_sha256 != subject.tokenizer->sha256)
    throw InputError("{}: law {} is for another tokenizer than that of model {}", where,
                     printable(facts.name), subject.model_name);
}

void expect_keys(const JsonNode& json, std::initializer_list<const char*> keys) {
  json.expect_object();
  std::vector<std::string> known(keys.begin(), keys.end());
  for (const auto& [key, value] : json.value().items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw InputError("{}: there is no key \"{}\" here; known are {}{}", json.where(), printable(key),
                       fmt::join(known, ", "), did_you_mean(key, known));
}

Bos read_law_bos(const JsonNode& json, std::size_t d_vocab) {
  if (!json.has("bos")) return {};
  const JsonNode bos = json.at("bos");
  if (bos.value() == "auto") return {};
  if (bos.value() == "none") return {.kind = Bos::Kind::none};
  if (!bos.value().is_number()) bos.fail_expected("\"auto\", \"none\" or a token's id");
  return {.kind = Bos::Kind::token, .id = bos.token_id(d_vocab)};
}

}  // namespace deeptail
