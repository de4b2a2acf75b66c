// A regular expression as its automaton on bytes, for whoever follows texts of a model that is not ours.
#include <array>
#include <map>

#include "c_api/calls.h"
#include "deeptail/patterns.h"

namespace deeptail::c_api {

namespace {

// Bytes that every state treats alike are one class: [256].
std::array<std::uint32_t, 256> byte_classes(const ByteDfa& dfa) {
  std::array<std::uint32_t, 256> classes = {};
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;  // columns
  for (std::size_t byte = 0; byte < 256; ++byte) {
    std::vector<std::uint32_t> column;
    for (const auto& next : dfa.next) column.push_back(next[byte]);
    classes[byte] = known.try_emplace(std::move(column), known.size()).first->second;
  }
  return classes;
}

}  // namespace

// next: [n_states, classes].
OrderedJson pattern_automaton(const JsonNode& arguments, const Watch&) {
  expect_keys(arguments, {"matches"});
  const ByteDfa dfa = matches(arguments.at("matches").text(), "regular expression");
  const std::array<std::uint32_t, 256> classes = byte_classes(dfa);
  std::map<std::uint32_t, std::size_t> byte_of;  // one of each class
  for (std::size_t byte = 0; byte < 256; ++byte) byte_of.emplace(classes[byte], byte);
  OrderedJson next = OrderedJson::array();
  for (const auto& of_state : dfa.next) {
    OrderedJson row = OrderedJson::array();
    for (const auto& [number, byte] : byte_of) row.push_back(of_state[byte]);
    next.push_back(std::move(row));
  }
  return {{"start", dfa.start},
          {"classes", classes},
          {"next", std::move(next)},
          {"accepting", dfa.accepting},
          {"accepting_at_end", dfa.accepting_at_end}};
}

}  // namespace deeptail::c_api
