#include "inputs/weighted_texts.h"

#include <cmath>
#include <numeric>

namespace deeptail {

namespace {

double read_weight(const JsonNode& node) {
  const double weight = node.number();
  if (!(weight > 0.0)) node.fail_expected("a number above 0");
  return weight;
}

// Calls use(line, its number from 1 on) for lines that are not empty.
template <class Use>
void for_each_line(std::string_view text, const Use& use) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) use(line, number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void check_any(const WeightedTexts& texts, std::string_view where) {
  if (texts.texts.empty()) throw InputError("{}: no texts; expected at least one", where);
}

}  // namespace

WeightedTexts read_list(const JsonNode& list) {
  WeightedTexts out;
  bool any_weight = false;
  for (std::size_t i = 0; i < list.array_size(); ++i) {
    const JsonNode item = list.element(i);
    double weight = 1.0;
    if (item.value().is_object()) {
      expect_keys(item, {"text", "weight"});
      if (item.has("weight")) weight = read_weight(item.at("weight"));
      any_weight = any_weight || item.has("weight");
      out.texts.push_back(item.at("text").text());
    } else {
      out.texts.push_back(item.text());
    }
    out.weights.push_back(weight);
  }
  if (!any_weight) out.weights.clear();
  check_any(out, list.where());
  return out;
}

WeightedTexts read_lines(std::string_view text, std::string_view where) {
  WeightedTexts out;
  for_each_line(text, [&](std::string_view line, std::size_t) { out.texts.emplace_back(line); });
  check_any(out, where);
  return out;
}

WeightedTexts read_jsonl(std::string_view text, std::string_view where, const std::string& text_key,
                         const std::string& weight_key) {
  WeightedTexts out;
  for_each_line(text, [&](std::string_view line, std::size_t number) {
    const std::string place = fmt::format("{}: line {}", where, number);
    const Json document = parse_json(line, place);
    const JsonNode json(document, place);
    out.texts.push_back(json.at(text_key.c_str()).text());
    if (!weight_key.empty()) out.weights.push_back(read_weight(json.at(weight_key.c_str())));
  });
  check_any(out, where);
  return out;
}

WeightedTexts read_texts_file(LawReader& reader, const JsonNode& node) {
  const InputFile file = reader.file(node.at("file"));
  if (node.has("field"))
    return read_jsonl(file.text(), file.path(), node.at("field").text(),
                      node.has("weight") ? node.at("weight").text() : "");
  if (node.has("weight"))
    throw InputError("{}: weights are read from JSONL; name its \"field\" of texts too",
                     node.at("weight").where());
  return read_lines(file.text(), file.path());
}

TokenTable choice_of(std::size_t n, const std::vector<double>& weights, const std::string& where) {
  std::vector<TokenId> indices(n);
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<double> p(weights);
  if (p.empty()) p.assign(n, 1.0);
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  if (!std::isfinite(sum)) throw InputError("{}: the weights sum to {}", where, sum);
  for (double& weight : p) weight /= sum;
  return TokenTable("", std::move(indices), std::move(p), where);
}

}  // namespace deeptail
