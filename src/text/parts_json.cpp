#include "text/parts_json.h"

#include "deeptail/core.h"
#include "text/unicode.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxMembers = 64;

void visit_members(const JsonNode& node, const char* members,
                   const std::function<void(const JsonNode&)>& visit, std::size_t& seen) {
  if (++seen > kMaxMembers)
    throw InputError("{}: more than {} parts; at most that many are supported", node.where(), kMaxMembers);
  if (type_of(node) != "Sequence") return visit(node);
  const JsonNode list = node.at(members);
  const std::size_t n = list.array_size();
  for (std::size_t i = 0; i < n; ++i) visit_members(list.element(i), members, visit, seen);
}

PrependScheme read_scheme(const JsonNode& node) {
  const bool prefix = !node.has("add_prefix_space") || node.at("add_prefix_space").boolean();
  if (!node.has("prepend_scheme")) return prefix ? PrependScheme::always : PrependScheme::never;
  const JsonNode scheme = node.at("prepend_scheme");
  const auto read = [&] {
    if (scheme.text() == "always") return PrependScheme::always;
    if (scheme.text() == "first") return PrependScheme::first;
    if (scheme.text() == "never") return PrependScheme::never;
    scheme.fail_expected("always, first or never");
  };
  const PrependScheme found = read();
  if (!prefix && found != PrependScheme::never) scheme.fail_expected("never, as add_prefix_space is false");
  return found;
}

}  // namespace

void refuse_type(const JsonNode& node, std::string_view supported) {
  throw InputError("{}: found \"{}\"; supported are {}", node.at("type").where(), printable(type_of(node)),
                   supported);
}

void for_each_member(const JsonNode& node, const char* members,
                     const std::function<void(const JsonNode&)>& visit) {
  std::size_t seen = 0;
  visit_members(node, members, visit, seen);
}

const std::string& non_empty(const JsonNode& text) {
  if (text.text().empty()) text.fail_expected("text that is not empty");
  return text.text();
}

const std::string& one_character(const JsonNode& text) {
  const std::string& found = text.text();
  if (found.empty() || code_point_at(found, 0).length != found.size()) text.fail_expected("one character");
  return found;
}

Metaspace read_metaspace(const JsonNode& node) {
  return {one_character(node.at("replacement")), read_scheme(node)};
}

}  // namespace deeptail
