#include <array>

#include "deeptail/core.h"
#include "text/parts_json.h"
#include "text/spec.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxPrepend = 64;

SplitBehavior read_behavior(const JsonNode& node) {
  static constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors = {{
      {"Removed", SplitBehavior::removed},
      {"Isolated", SplitBehavior::isolated},
      {"Contiguous", SplitBehavior::contiguous},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
  }};
  for (const auto& [name, behavior] : kBehaviors)
    if (node.text() == name) return behavior;
  node.fail_expected("Removed, Isolated, Contiguous, MergedWithPrevious or MergedWithNext");
}

Regex read_pattern(const JsonNode& node) {
  if (node.has("Regex")) return Regex::from_pattern(node.at("Regex").text(), node.at("Regex").where());
  if (node.has("String")) return Regex::from_literal(node.at("String").text(), node.at("String").where());
  node.fail_expected("{\"Regex\": ...} or {\"String\": ...}");
}

Split read_split(const JsonNode& node) {
  return {read_pattern(node.at("pattern")), read_behavior(node.at("behavior")), node.at("invert").boolean()};
}

Split read_digits(const JsonNode& node) {
  const bool individual = node.at("individual_digits").boolean();
  return {Regex::from_pattern(R"(\p{N})", node.where()),
          individual ? SplitBehavior::isolated : SplitBehavior::contiguous};
}

PreTokenizerStep read_byte_level(const JsonNode& node) {
  PreTokenizerStep step;
  if (node.at("add_prefix_space").boolean()) step.prefix = " ";
  if (!node.has("use_regex") || node.at("use_regex").boolean())
    step.split = Split{Regex::from_pattern(kByteLevelPattern, node.where()), SplitBehavior::isolated};
  return step;
}

PreTokenizerStep read_metaspace_step(const JsonNode& node) {
  const Metaspace metaspace = read_metaspace(node);
  PreTokenizerStep step;
  step.space = metaspace.replacement;
  if (metaspace.scheme != PrependScheme::never) step.prefix = metaspace.replacement;
  step.prefix_at_start_only = metaspace.scheme == PrependScheme::first;
  if (!node.has("split") || node.at("split").boolean())
    step.split =
        Split{Regex::from_literal(metaspace.replacement, node.where()), SplitBehavior::merged_with_next};
  return step;
}

// Short: every piece of text between added tokens gets it.
Prepend read_prepend(const JsonNode& node) {
  const std::string& text = node.at("prepend").text();
  if (text.size() > kMaxPrepend) node.at("prepend").fail_expected("a text of at most 64 bytes");
  return {text};
}

Replace read_replace(const JsonNode& node) {
  const JsonNode pattern = node.at("pattern");
  const std::string& content = node.at("content").text();
  if (pattern.has("String")) return {non_empty(pattern.at("String")), content};
  // Releases of HuggingFace's library differ in whether $1 is a group.
  if (content.find('$') != std::string::npos)
    node.at("content").fail_expected("no $ in what takes the place of a Regex");
  return {read_pattern(pattern), content};
}

}  // namespace

Normalizer read_normalizer(const JsonNode& root) {
  std::vector<Normalizer::Step> steps;
  if (root.has("normalizer"))
    for_each_member(root.at("normalizer"), "normalizers", [&](const JsonNode& node) {
      const std::string& type = type_of(node);
      if (type == "NFC")
        steps.push_back(Nfc{});
      else if (type == "Prepend")
        steps.push_back(read_prepend(node));
      else if (type == "Replace")
        steps.push_back(read_replace(node));
      else
        refuse_type(node, "NFC, Prepend, Replace, a Sequence of them, and null");
    });
  return Normalizer(std::move(steps));
}

PreTokenizer read_pre_tokenizer(const JsonNode& root) {
  PreTokenizer pre_tokenizer;
  if (!root.has("pre_tokenizer")) return pre_tokenizer;
  for_each_member(root.at("pre_tokenizer"), "pretokenizers", [&](const JsonNode& node) {
    const std::string& type = type_of(node);
    if (pre_tokenizer.bytes)
      throw InputError("{}: follows ByteLevel; supported is ByteLevel at the end of a Sequence",
                       node.where());
    if (type == "Split")
      pre_tokenizer.steps.push_back({.split = read_split(node)});
    else if (type == "Digits")
      pre_tokenizer.steps.push_back({.split = read_digits(node)});
    else if (type == "Metaspace")
      pre_tokenizer.steps.push_back(read_metaspace_step(node));
    else if (type == "ByteLevel")
      pre_tokenizer.steps.push_back(read_byte_level(node));
    else
      refuse_type(node, "ByteLevel, Digits, Metaspace, Split, a Sequence of them, and null");
    pre_tokenizer.bytes = type == "ByteLevel";
  });
  return pre_tokenizer;
}

}  // namespace deeptail
