// The syntax of docs/patterns.md, which is PCRE2's where it has a meaning there.
#include <algorithm>
#include <optional>

#include "core/json.h"
#include "deeptail/core.h"
#include "patterns/regex_escapes.h"
#include "patterns/regex_tree.h"
#include "text/unicode.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxPattern = 10'000, kMaxNesting = 100, kMaxRepeat = 1000;

struct RegexFlags {
  bool any_case = false, dot_is_all = false;
};

RegexNode set_node(CodePoints set) { return {.kind = RegexNode::Kind::set, .set = std::move(set)}; }
RegexNode edge_node(RegexNode::Kind kind) { return {.kind = kind}; }
// A place, not a character: it is not repeated.
bool is_edge(RegexNode::Kind kind) {
  return kind == RegexNode::Kind::text_start || kind == RegexNode::Kind::text_end ||
         kind == RegexNode::Kind::word_edge || kind == RegexNode::Kind::no_word_edge;
}

class RegexParser {
 public:
  RegexParser(std::string_view pattern, std::string_view where) : in_(pattern, where) {}

  RegexNode parse() {
    RegexFlags flags;
    RegexNode node = choice(flags, 0);
    if (!in_.at_end()) in_.fail("a ) closes no group; write \\) for the character");
    return node;
  }

 private:
  // Flags set in it hold until its end, also in the alternatives that follow.
  RegexNode choice(RegexFlags& flags, std::size_t depth) {
    if (depth > kMaxNesting) in_.fail(fmt::format("more than {} groups lie in each other", kMaxNesting));
    RegexNode node{.kind = RegexNode::Kind::choice};
    do node.parts.push_back(sequence(flags, depth));
    while (in_.take("|"));
    return node.parts.size() == 1 ? std::move(node.parts[0]) : node;
  }

  RegexNode sequence(RegexFlags& flags, std::size_t depth) {
    RegexNode node{.kind = RegexNode::Kind::sequence};
    while (!in_.at_end() && !in_.sees("|") && !in_.sees(")"))
      if (auto part = item(flags, depth))
        node.parts.push_back(is_edge(part->kind) ? std::move(*part) : quantified(std::move(*part)));
    return node;
  }

  // Nothing for flags like (?i).
  std::optional<RegexNode> item(RegexFlags& flags, std::size_t depth) {
    if (in_.sees("*") || in_.sees("+") || in_.sees("?") || sees_counts())
      in_.fail("there is nothing to repeat here");
    if (in_.take("(")) return group(flags, depth);
    if (in_.take("[")) return set_node(bracket(flags));
    if (in_.take("^")) return edge_node(RegexNode::Kind::text_start);
    if (in_.take("$")) return edge_node(RegexNode::Kind::text_end);
    if (in_.take(".")) return set_node(flags.dot_is_all ? CodePoints().others() : all_but_newline());
    if (in_.take("\\")) {
      if (in_.take("b")) return edge_node(RegexNode::Kind::word_edge);
      if (in_.take("B")) return edge_node(RegexNode::Kind::no_word_edge);
      if (in_.take("A")) return edge_node(RegexNode::Kind::text_start);
      if (in_.take("z")) return edge_node(RegexNode::Kind::text_end);
      return set_node(cased(read_escape(in_).set, flags));
    }
    CodePoints one;
    const char32_t c = in_.character();
    one.add(c, c);
    return set_node(cased(std::move(one), flags));
  }

  std::optional<RegexNode> group(RegexFlags& outer, std::size_t depth) {
    RegexFlags flags = outer;
    if (in_.take("?")) {
      if (in_.sees("=") || in_.sees("!") || in_.sees("<=") || in_.sees("<!"))
        in_.fail("looking ahead or behind is not supported");
      if (in_.sees(">")) in_.fail("atomic groups are not supported");
      if (in_.sees("#")) in_.fail("comments are not supported");
      if (in_.take("P<") || in_.take("<") || in_.take("'")) {
        skip_name();
      } else if (!in_.take(":")) {
        read_flags(flags);
        if (in_.take(")")) {
          outer = flags;
          return std::nullopt;
        }
        if (!in_.take(":")) in_.fail("expected ) or : after the flags of a group");
      }
    } else if (in_.sees("*")) {
      in_.fail("verbs such as (*ACCEPT) are not supported");
    }
    RegexNode node = choice(flags, depth + 1);
    if (!in_.take(")")) in_.fail("a group is not closed; expected )");
    return node;
  }

  void skip_name() {
    const auto is_name = [&] { return !in_.at_end() && is_word_byte(in_.byte()); };
    if (!is_name() || (in_.byte() >= '0' && in_.byte() <= '9')) in_.fail("expected the name of a group");
    while (is_name()) in_.skip(1);
    if (!in_.take(">") && !in_.take("'")) in_.fail("the name of a group is not closed");
  }

  void read_flags(RegexFlags& flags) {
    bool on = true, any = false;
    for (; !in_.sees(")") && !in_.sees(":"); any = true) {
      if (in_.take("-"))
        on = false;
      else if (in_.take("i"))
        flags.any_case = on;
      else if (in_.take("s"))
        flags.dot_is_all = on;
      else
        in_.fail("supported flags of a group are i and s, and a group is (?:...)");
    }
    if (!any && in_.sees(")")) in_.fail("expected flags i or s");
  }

  static CodePoints all_but_newline() {
    CodePoints newline;
    newline.add('\n', '\n');
    return newline.others();
  }
  static CodePoints cased(CodePoints set, const RegexFlags& flags) {
    return flags.any_case ? set.in_both_cases() : set;
  }

  // After the [.
  CodePoints bracket(const RegexFlags& flags) {
    const bool negated = in_.take("^");
    CodePoints set;
    for (bool first = true; first || !in_.sees("]"); first = false) {
      const Escaped low = bracket_item();
      if (!in_.sees("-") || in_.sees("-]")) {
        set.add(low.set);
        continue;
      }
      in_.skip(1);
      const Escaped high = bracket_item();
      if (!low.one || !high.one || *high.one < *low.one)
        in_.fail("a range in [ ] is not one; expected two characters in order, or \\- for the character");
      set.add(*low.one, *high.one);
    }
    in_.skip(1);
    set = cased(std::move(set), flags);
    return negated ? set.others() : set;
  }

  Escaped bracket_item() {
    if (in_.at_end()) in_.fail("a [ is not closed; expected ]");
    if (in_.sees("[:") || in_.sees("[.") || in_.sees("[="))
      in_.fail("classes such as [:alpha:] are not supported; write a-zA-Z");
    if (in_.take("\\")) {
      if (in_.sees("b") || in_.sees("B") || in_.sees("A") || in_.sees("z"))
        in_.fail("this escape has no meaning in [ ]");
      return read_escape(in_);
    }
    return one_character(in_.character());
  }

  struct Counts {
    std::size_t least, most, bytes;
  };
  // {m}, {m,} or {m,n} at this place; anything else is taken for characters, as PCRE2 does.
  std::optional<Counts> counts() const {
    std::string_view rest = in_.rest();
    if (!rest.starts_with("{")) return std::nullopt;
    const auto close = rest.find('}');
    if (close == rest.npos || close > 20) return std::nullopt;
    const std::string_view inside = rest.substr(1, close - 1);
    const auto comma = inside.find(',');
    const std::string_view low = inside.substr(0, comma);
    const auto is_number = [](std::string_view text) {
      return !text.empty() &&
             std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    };
    const auto number = [](std::string_view text) {
      return text.size() > 6 ? kMaxRepeat + 1 : static_cast<std::size_t>(std::stoul(std::string(text)));
    };
    if (!is_number(low)) return std::nullopt;
    if (comma == inside.npos) return Counts{number(low), number(low), close + 1};
    const std::string_view high = inside.substr(comma + 1);
    if (high.empty()) return Counts{number(low), RegexNode::kNoLimit, close + 1};
    if (!is_number(high)) return std::nullopt;
    return Counts{number(low), number(high), close + 1};
  }
  bool sees_counts() const { return counts().has_value(); }

  RegexNode quantified(RegexNode part) {
    std::size_t least = 0, most = RegexNode::kNoLimit;
    if (in_.take("*")) {
    } else if (in_.take("+")) {
      least = 1;
    } else if (in_.take("?")) {
      most = 1;
    } else if (const auto given = counts()) {
      least = given->least;
      most = given->most;
      if (least > kMaxRepeat || (most > kMaxRepeat && most != RegexNode::kNoLimit) || most < least)
        in_.fail(fmt::format("the numbers of a repetition must ascend and be at most {}", kMaxRepeat));
      in_.skip(given->bytes);
    } else {
      return part;
    }
    in_.take("?");  // as few as possible: the same texts match
    if (in_.sees("+")) in_.fail("repetitions that give nothing back (++, *+, ?+) are not supported");
    if (in_.sees("*") || in_.sees("?") || sees_counts())
      in_.fail("a repetition is repeated; put it into ( )");
    RegexNode node{.kind = RegexNode::Kind::repeat, .least = least, .most = most};
    node.parts.push_back(std::move(part));
    return node;
  }

  RegexText in_;
};

}  // namespace

RegexNode parse_regex(std::string_view pattern, std::string_view where) {
  if (pattern.size() > kMaxPattern)
    throw InputError("{}: the regular expression has {} bytes; expected at most {}", where, pattern.size(),
                     kMaxPattern);
  if (valid_utf8_prefix(pattern) != pattern.size())
    throw InputError("{}: the regular expression \"{}\" is not valid UTF-8", where, printable(pattern));
  return RegexParser(pattern, where).parse();
}

bool is_word_byte(unsigned char byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
         byte == '_';
}

}  // namespace deeptail
