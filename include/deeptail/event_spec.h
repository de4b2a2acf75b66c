// What may happen after an input, in words: what the command line's flags, files of events and programs say.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/core.h"
#include "deeptail/enum_names.h"

namespace [[gnu::visibility("default")]] deeptail {

enum class EventKind { kTarget, kStartsWith, kContains, kMatches, kTokensAny, kJudge, kProbe };
template <>
struct EnumNames<EventKind> {
  static constexpr std::string_view kAll[] = {"target",     "starts_with", "contains", "matches",
                                              "tokens_any", "judge",       "probe"};
};

struct EventSpec {
  EventKind kind = EventKind::kContains;
  std::string value = {};         // text, pattern, command or file
  std::vector<TokenId> ids = {};  // of kTarget and kTokensAny
  std::size_t within = 0;  // tokens of the continuation; 0 of kStartsWith: as many as its text has bytes
  double threshold = 0.0;  // of kJudge and kProbe
  friend bool operator==(const EventSpec&, const EventSpec&) = default;

  bool has_threshold() const { return kind == EventKind::kJudge || kind == EventKind::kProbe; }
  bool has_ids() const { return kind == EventKind::kTarget || kind == EventKind::kTokensAny; }
  // Tokens that are drawn at most: no more are needed to tell whether it happened.
  std::size_t length() const {
    if (kind == EventKind::kTarget) return 1;
    return kind == EventKind::kStartsWith && within == 0 ? value.size() : within;
  }
};

}  // namespace deeptail
