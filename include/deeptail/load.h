// The front door: a model by its name, folder or GGUF file, read, packed and hashed once, however many questions it is
// asked.
//
//   const LoadedModel m = load_model("dt-1l");
//   const Distribution hex = load_distribution("hex", m);
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "deeptail/inputs.h"
#include "deeptail/law.h"
#include "deeptail/model.h"
#include "deeptail/text.h"

namespace [[gnu::visibility("default")]] deeptail {

// A model's tokenizer with the hash of its file.
struct NamedTokenizer {
  Tokenizer tokenizer;
  std::string sha256;
};
NamedTokenizer load_tokenizer(const std::string& path);  // a tokenizer.json
// Nothing when config.json names none. A GGUF file has its own.
std::optional<NamedTokenizer> tokenizer_of(const ModelConfig& config, const std::string& folder);

struct LoadedModel {
  Transformer transformer;
  std::optional<NamedTokenizer> tokenizer;
  std::string name, folder;
  std::string sha256;  // model_sha256: what results call it by

  const ModelConfig& config() const { return transformer.config(); }
  const Head& head() const { return transformer.head(); }
};
// A folder, a GGUF file, or a name that find_model knows.
LoadedModel load_model(const std::string& name_or_path);

// Whom a law of text is made for: its tokenizer makes the tokens.
struct LawSubject {
  std::string model_name, folder;
  std::size_t d_vocab = 0;
  std::optional<NamedTokenizer> tokenizer = {};
  std::optional<Transformer> transformer = {};  // where it is loaded already; laws of its own texts need it
  std::string model_sha256 = {};                // of the transformer
};
LawSubject law_subject(const LoadedModel& model);
LawSubject law_subject(const std::string& model);  // by name or path; reads no weights

// A distribution by its name or file. Throws InputError when it is for another vocabulary, tokenizer or
// length than the model's.
Distribution load_distribution(const std::string& name_or_path, const LoadedModel& model);
// Any law, likewise.
std::unique_ptr<InputLaw> load_law(const std::string& name_or_path, const LoadedModel& model);
std::unique_ptr<InputLaw> load_law(const std::string& name_or_path, const LawSubject& subject);
// subject null: laws of text are refused. depth: how many laws this one is a part of.
std::unique_ptr<InputLaw> parse_law(std::string_view json, std::string_view where, std::string_view folder,
                                    const LawSubject* subject, std::size_t depth = 0);

// A law of this prompt alone. All its inputs are the same: check_varies throws.
std::unique_ptr<InputLaw> law_of_prompt(std::string_view text, const LawSubject& subject,
                                        const Bos& bos = {});
// The prompts of a file, each as likely as the others: one a line, or JSONL (by the file's name), with the key
// "prompt" or "text" and perhaps "weight".
std::unique_ptr<InputLaw> law_of_prompts(const std::string& path, const LawSubject& subject,
                                         const Bos& bos = {});

}  // namespace deeptail
