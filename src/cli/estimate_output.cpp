#include "cli/estimate_output.h"

#include <cmath>

#include "cli/command_line.h"
#include "cli/streams.h"
#include "cli/tokens.h"
#include "core/json.h"
#include "core/screen_text.h"

namespace deeptail::cli {

namespace {

void print_figures(const Estimate& e) {
  if (e.diagnostics.empty()) return;
  std::vector<std::string> figures;
  for (const auto& [name, value] : e.diagnostics) figures.push_back(fmt::format("{} {:.4g}", name, value));
  fmt::print("{}\n", fmt::join(figures, "  "));
}

// The continuation with its match in brackets.
std::string marked(const AnswerText& said) {
  const std::string& text = said.continuation;
  if (said.match_end == 0) return screen_text(text, 400);
  const auto piece = [&](std::size_t begin, std::size_t end) {
    return screen_text(std::string_view(text).substr(begin, end - begin), 400);
  };
  return fmt::format("{}[{}]{}", piece(0, said.match_begin), piece(said.match_begin, said.match_end),
                     piece(said.match_end, text.size()));
}

void print_answers(const Estimate& e, const std::optional<NamedTokenizer>& tokenizer) {
  if (!e.triggers.empty()) fmt::print("texts that do, with what was looked for in brackets:\n");
  for (const Trigger& t : e.triggers)
    fmt::print("  {} | {}\n",
               tokenizer ? screen_text(t.said.prompt, 400) : fmt::format("{}", fmt::join(t.tokens, " ")),
               tokenizer ? marked(t.said) : fmt::format("{}", fmt::join(t.answer, " ")));
}

void print_triggers(const Estimate& e, const std::optional<NamedTokenizer>& tokenizer) {
  if (!e.event_json.empty()) return print_answers(e, tokenizer);
  if (!e.triggers.empty()) fmt::print("inputs that say it:\n");
  for (const Trigger& t : e.triggers)
    fmt::print("  {}\n", tokenizer ? screen_text(t.text, 400) : fmt::format("{}", fmt::join(t.tokens, " ")));
  if (!e.positions.empty()) fmt::print("what they share:\n");
  for (const DecidingPosition& p : e.positions)
    fmt::print("  position {} is {} in {:.0f}% (of all inputs {:.3g}%)\n", p.position,
               tokenizer ? shown(tokenizer, p.token) : fmt::format("{}", p.token), 100.0 * p.share,
               100.0 * p.prior);
}

void print_question(const Estimate& e, const std::optional<NamedTokenizer>& tokenizer) {
  const std::string model = screen_text(e.provenance.model), law = screen_text(e.provenance.dist);
  if (e.event_json.empty())
    fmt::print("Pr[{} on {} says {}], {}, {} forward passes' work\n", model, law,
               shown_tokens(tokenizer, e.target), e.method, short_count(e.cost.forward_equivalents));
  else
    fmt::print("Pr[{} on {} {}], {}{}, {} tokens' work\n", model, law, screen_text(e.event, kAnyWidth),
               e.method, e.chosen.empty() ? "" : fmt::format(" ({})", e.chosen), short_count(e.cost.tokens));
}

void print_whole(const Estimate& e, const std::optional<NamedTokenizer>& tokenizer) {
  print_question(e, tokenizer);
  const double low = std::exp(e.log_low), high = std::exp(e.log_high);
  if (e.guarantee == Guarantee::kExact)
    fmt::print("p = {:.15g}, exactly: all {} inputs were counted\n", std::exp(e.log_p), e.cost.forward);
  else if (e.status == Status::kNotReachedUpperBound)
    fmt::print("p < {:.3g} ({:.0f}% confidence): the event was never seen\n", high, 100.0 * e.confidence);
  else
    fmt::print("p = {:.4g}  {:.0f}% interval [{:.4g}, {:.4g}]\n", std::exp(e.log_p), 100.0 * e.confidence,
               low, high);
  fmt::print("status {}  guarantee {}  seed {}  {:.1f} s\n", name_of(e.status), name_of(e.guarantee), e.seed,
             e.cost.seconds);
  print_figures(e);
  for (const std::string& warning : e.warnings) fmt::print("warning: {}\n", screen_text(warning, kAnyWidth));
  print_triggers(e, tokenizer);
}

constexpr std::size_t kTargetColumns = 24;

// As wide as the column on the screen, whatever the bytes.
std::string target_cell(const std::string& text) {
  const std::string cell = shorten_middle(text, kTargetColumns);
  return cell + std::string(kTargetColumns - display_width(cell), ' ');
}

void print_header(const Estimate& e) {
  fmt::print("{} on {}, {}, seed {}\n", screen_text(e.provenance.model), screen_text(e.provenance.dist),
             e.method, e.seed);
  fmt::print("{} {:<10} {:<24} {}\n", target_cell("target"), "p",
             fmt::format("{:.0f}% interval", 100.0 * e.confidence), "status");
}

void print_row(const Estimate& e, const std::optional<NamedTokenizer>& tokenizer) {
  const double low = std::exp(e.log_low), high = std::exp(e.log_high);
  const bool seen = e.status != Status::kNotReachedUpperBound;
  fmt::print("{} {:<10} {:<24} {}\n",
             target_cell(e.event_json.empty() ? shown_tokens(tokenizer, e.target) : screen_text(e.event)),
             seen ? fmt::format("{:.4g}", std::exp(e.log_p)) : fmt::format("< {:.3g}", high),
             fmt::format("[{:.4g}, {:.4g}]", low, high), name_of(e.status));
  for (const std::string& warning : e.warnings)
    fmt::print("  warning: {}\n", screen_text(warning, kAnyWidth));
}

}  // namespace

std::string estimate_line(const Estimate& e, const std::optional<NamedTokenizer>& tokenizer) {
  OrderedJson texts(nullptr);
  if (tokenizer) texts = OrderedJson::array();
  for (std::size_t i = 0; tokenizer && i < e.target.size(); ++i)
    texts.push_back(text_of_token(tokenizer->tokenizer, e.target[i]));
  std::string line = to_json(e);
  line.pop_back();
  return fmt::format("{},\"target_text\":{},\"command\":{}}}", line, json_text(texts),
                     json_text(OrderedJson(command_line())));
}

EstimatePrinter::EstimatePrinter(std::size_t n_targets, bool json,
                                 const std::optional<NamedTokenizer>& tokenizer, ProgressMeter& meter)
    : json_(json), tokenizer_(tokenizer), meter_(meter), waiting_(n_targets) {}

void EstimatePrinter::take(std::size_t target, Estimate estimate) {
  waiting_[target] = std::move(estimate);
  for (; next_ < waiting_.size() && waiting_[next_]; ++next_) {
    print(std::move(*waiting_[next_]));
    waiting_[next_].reset();
  }
}

void EstimatePrinter::print(Estimate estimate) {
  decode_tokens(estimate, tokenizer_);
  budget_spent_ = budget_spent_ || estimate.status == Status::kBudgetSpent;
  meter_.clear();
  if (json_) {
    fmt::print("{}\n", estimate_line(estimate, tokenizer_));
  } else if (waiting_.size() == 1) {
    print_whole(estimate, tokenizer_);
  } else {
    if (next_ == 0) print_header(estimate);
    print_row(estimate, tokenizer_);
  }
  flush_output();
}

}  // namespace deeptail::cli
