// Laws of text on the command line: shown, sampled and checked with the tokenizer of a model.
#pragma once

#include <cstdint>
#include <string>

namespace deeptail::cli {

// Whether a name or file of a distribution is a law of text. False where it cannot be told: reading it says why.
bool is_text_law(const std::string& name_or_path);

struct LawSamples {
  std::string name, model;
  std::uint64_t seed = 1, first = 0, count = 0;
  bool json = false, text = false;
};
void show_law(const std::string& name, const std::string& model, bool json);
void print_law_samples(const LawSamples& options);
// Any law: says what it is. model "": only tables can be checked.
void check_law(const std::string& name, const std::string& model);
// Its row in a list, which no model is needed for.
void list_law(const std::string& file);

}  // namespace deeptail::cli
