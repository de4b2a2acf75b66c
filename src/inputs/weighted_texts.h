// Texts with weights, as pools and slots of templates have them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "inputs/law_reader.h"

namespace deeptail {

struct WeightedTexts {
  std::vector<std::string> texts;
  std::vector<double> weights = {};  // [texts], above 0; empty: all the same
};

// list: texts, or objects with "text" and "weight".
WeightedTexts read_list(const JsonNode& list);
// One text a line; the end of a line may have a carriage return, and empty lines are left out.
WeightedTexts read_lines(std::string_view text, std::string_view where);
// One JSON object a line; weight_key "": all the same.
WeightedTexts read_jsonl(std::string_view text, std::string_view where, const std::string& text_key,
                         const std::string& weight_key);
// node: an object with "file", and for JSONL with "field" and perhaps "weight".
WeightedTexts read_texts_file(LawReader& reader, const JsonNode& node);

// Draws an index into weights, or one below n where there are none.
TokenTable choice_of(std::size_t n, const std::vector<double>& weights, const std::string& where);

}  // namespace deeptail
