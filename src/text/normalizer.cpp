#include "text/normalizer.h"

#include <algorithm>

#include "deeptail/core.h"
#include "text/nfc.h"
#include "text/unicode.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxGrowth = 64;
constexpr std::size_t kFreeGrowth = 4096;

// Joins what lies between matches with `content`.
class Replacer {
 public:
  Replacer(std::string_view text, std::string_view content, std::size_t limit)
      : text_(text), content_(content), limit_(limit) {
    out_.reserve(text.size());
  }
  void match(Span span) {
    append(text_.substr(end_, span.begin - end_));
    append(content_);
    end_ = span.end;
  }
  std::string finish() {
    append(text_.substr(end_));
    return std::move(out_);
  }

 private:
  void append(std::string_view part) {
    if (out_.size() + part.size() > limit_)
      throw InputError("the tokenizer's Replace makes more than {} bytes out of a text of {}", limit_,
                       text_.size());
    out_ += part;
  }
  std::string_view text_, content_;
  std::size_t limit_, end_ = 0;
  std::string out_;
};

struct Apply {
  std::size_t limit;

  std::string operator()(const Nfc&, std::string_view text) const { return to_nfc(text); }
  std::string operator()(const Prepend& step, std::string_view text) const {
    return text.empty() ? std::string() : step.text + std::string(text);
  }
  std::string operator()(const Replace& step, std::string_view text) const {
    if (const auto* literal = std::get_if<std::string>(&step.pattern))
      return replace_all(text, *literal, step.content, limit);
    MatchClock clock;
    clock.add_text(text.size());
    Matcher matcher(std::get<Regex>(step.pattern), clock);
    matcher.start(text);
    Replacer replacer(text, step.content, limit);
    while (const auto span = matcher.next()) replacer.match(*span);
    return replacer.finish();
  }
};

}  // namespace

std::size_t rewritten_limit(std::size_t bytes) { return kMaxGrowth * bytes + kFreeGrowth; }

std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        std::size_t limit) {
  Replacer replacer(text, to, limit);
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string_view::npos; at += from.size())
    replacer.match({at, at + from.size()});
  return replacer.finish();
}

bool Normalizer::keeps_places() const {
  const auto is_character = [](std::string_view text) {
    return !text.empty() && code_point_at(text, 0).length == text.size();
  };
  return std::all_of(steps_.begin(), steps_.end(), [&](const Step& step) {
    if (std::holds_alternative<Nfc>(step)) return true;
    const auto* replace = std::get_if<Replace>(&step);
    if (replace == nullptr) return false;
    const auto* literal = std::get_if<std::string>(&replace->pattern);
    return literal != nullptr && is_character(*literal) && is_character(replace->content);
  });
}

std::string Normalizer::apply(std::string_view text) const {
  const Apply apply{rewritten_limit(text.size())};
  std::string out(text);
  for (const Step& step : steps_) out = std::visit([&](const auto& s) { return apply(s, out); }, step);
  return out;
}

}  // namespace deeptail
