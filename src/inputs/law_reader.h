// What readers of laws of text share: the file's folder, whom the law is for, and what it was made from.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_node.h"
#include "deeptail/load.h"

namespace deeptail {

inline constexpr std::string_view kLawFormat = "deeptail-law-1";

class LawReader {
 public:
  // folder: where files that the law names lie; "": such names are refused. subject: null where there is no model.
  LawReader(std::string_view folder, const LawSubject* subject, std::size_t depth = 0)
      : folder_(folder), subject_(subject), depth_(depth) {}

  // A law of this form: json has "kind".
  std::unique_ptr<InputLaw> read(const JsonNode& json);

  // The model that a law is for, and its tokenizer. Throw InputError, beginning with at.where(), where there is none.
  const LawSubject& subject(const JsonNode& at) const;
  const NamedTokenizer& tokenizer(const JsonNode& at) const;

  // A file named by the law, relative to its own; noted as what it was made from.
  InputFile file(const JsonNode& name);
  // Another law: its name, its file, or an object in place.
  std::unique_ptr<InputLaw> law(const JsonNode& node);
  Distribution distribution(const JsonNode& name);

  // Throws InputError where the law came from no file.
  void check_is_file(const JsonNode& name) const;

  void note(std::string sha256) { made_from_.push_back(std::move(sha256)); }
  // name, description and the hashes of the law itself and of all it was made from.
  LawFacts facts(const JsonNode& json, std::string_view kind) const;
  // The tokens of a prompt; throws InputError, beginning with `where`, for none and for those that the model has not.
  std::vector<TokenId> tokens_of(std::string_view text, const Bos& bos, const std::string& where) const;
  void check_tokens(std::span<const TokenId> tokens, const std::string& where) const;

 private:
  std::string path_of(const JsonNode& name) const;
  std::string law_path(const JsonNode& node) const;

  std::string folder_;
  const LawSubject* subject_;
  std::size_t depth_;
  std::vector<std::string> made_from_;
};

// Throws InputError, beginning with `where`, unless a law's ids are those of the subject's tokenizer.
void check_same_tokens(const InputLaw& law, const LawSubject& subject, const std::string& where);
// Throws InputError for a key that is none of these.
void expect_keys(const JsonNode& json, std::initializer_list<const char*> keys);
// "bos": "auto", "none" or a token's id; not there: auto.
Bos read_law_bos(const JsonNode& json, std::size_t d_vocab);

std::unique_ptr<InputLaw> read_pool(LawReader& reader, const JsonNode& json);
std::unique_ptr<InputLaw> read_constant(LawReader& reader, const JsonNode& json);
std::unique_ptr<InputLaw> read_template_law(LawReader& reader, const JsonNode& json);
std::unique_ptr<InputLaw> read_mixture(LawReader& reader, const JsonNode& json);
std::unique_ptr<InputLaw> read_language_model(LawReader& reader, const JsonNode& json);

}  // namespace deeptail
