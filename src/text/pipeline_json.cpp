#include <array>

#include "deeptail/core.h"
#include "text/spec.h"

namespace deeptail {

namespace {

const std::string& type_of(const JsonNode& node) { return node.at("type").text(); }

[[noreturn]] void refuse_type(const JsonNode& node, std::string_view supported) {
  throw InputError("{}: found \"{}\"; supported are {}", node.at("type").where(), printable(type_of(node)),
                   supported);
}

// Calls visit(node) for a part and, when it is a Sequence, for its members instead (under `members`).
template <class Visit>
void for_each_member(const JsonNode& node, const char* members, const Visit& visit) {
  if (type_of(node) != "Sequence") return visit(node);
  const JsonNode list = node.at(members);
  const std::size_t n = list.array_size();
  for (std::size_t i = 0; i < n; ++i) for_each_member(list.element(i), members, visit);
}

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

}  // namespace

bool read_normalizer(const JsonNode& root) {
  if (!root.has("normalizer")) return false;
  bool nfc = false;
  for_each_member(root.at("normalizer"), "normalizers", [&](const JsonNode& node) {
    if (type_of(node) != "NFC") refuse_type(node, "NFC, a Sequence of NFC, and null");
    nfc = true;
  });
  return nfc;
}

PreTokenizer read_pre_tokenizer(const JsonNode& root) {
  constexpr std::string_view kSupported =
      "ByteLevel, Digits, Split, and a Sequence of them that ends with ByteLevel";
  if (!root.has("pre_tokenizer"))
    throw InputError("{}: the pre_tokenizer is missing or null; supported are {}", root.where(), kSupported);
  PreTokenizer pre_tokenizer;
  bool complete = false;
  const JsonNode top = root.at("pre_tokenizer");
  for_each_member(top, "pretokenizers", [&](const JsonNode& node) {
    if (complete) throw InputError("{}: follows ByteLevel; supported are {}", node.where(), kSupported);
    const std::string& type = type_of(node);
    if (type == "Split") {
      pre_tokenizer.splits.push_back(read_split(node));
    } else if (type == "Digits") {
      pre_tokenizer.splits.push_back(read_digits(node));
    } else if (type == "ByteLevel") {
      complete = true;
      pre_tokenizer.add_prefix_space = node.at("add_prefix_space").boolean();
      if (!node.has("use_regex") || node.at("use_regex").boolean())
        pre_tokenizer.last =
            Split{Regex::from_pattern(kByteLevelPattern, node.where()), SplitBehavior::isolated};
    } else {
      refuse_type(node, kSupported);
    }
  });
  if (!complete) throw InputError("{}: no ByteLevel in it; supported are {}", top.where(), kSupported);
  return pre_tokenizer;
}

void check_unapplied_parts(const JsonNode& root) {
  if (root.has("post_processor"))
    for_each_member(root.at("post_processor"), "processors", [](const JsonNode& node) {
      if (type_of(node) != "ByteLevel" && type_of(node) != "TemplateProcessing")
        refuse_type(node, "ByteLevel, TemplateProcessing, a Sequence of them, and null");
    });
  if (root.has("decoder"))
    for_each_member(root.at("decoder"), "decoders", [](const JsonNode& node) {
      if (type_of(node) != "ByteLevel") refuse_type(node, "ByteLevel, a Sequence of ByteLevel, and null");
    });
}

}  // namespace deeptail
