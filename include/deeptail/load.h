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

// A distribution by its name or file. Throws InputError when it is for another vocabulary, tokenizer or
// length than the model's.
Distribution load_distribution(const std::string& name_or_path, const LoadedModel& model);
// Any law, likewise.
std::unique_ptr<InputLaw> load_law(const std::string& name_or_path, const LoadedModel& model);

}  // namespace deeptail
