#include "inputs/template_slots.h"

#include <algorithm>
#include <numeric>

#include "inputs/weighted_texts.h"

namespace deeptail {

namespace {

__extension__ typedef unsigned __int128 Product;

constexpr std::size_t kTriedTexts = 4096;  // the longest ones; tokens of a text grow with its bytes
constexpr std::int64_t kMaxRange = 1'000'000'000'000'000;
constexpr std::size_t kMaxTokenSlot = 4096;

std::size_t most_tokens_of(const Tokenizer& tokenizer, std::vector<std::string> texts) {
  const std::size_t tried = std::min(texts.size(), kTriedTexts);
  std::nth_element(texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(tried - 1), texts.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::size_t most = 0;
  for (std::size_t i = 0; i < tried; ++i) most = std::max(most, tokenizer.encode(texts[i]).size());
  return most;
}

class ListSlot final : public TemplateSlot {
 public:
  ListSlot(WeightedTexts texts, const Tokenizer& tokenizer, const std::string& where)
      : choice_(choice_of(texts.texts.size(), texts.weights, where)),
        texts_(std::move(texts.texts)),
        most_tokens_(most_tokens_of(tokenizer, texts_)) {}

  std::size_t n_values() const override { return texts_.size(); }
  std::uint64_t number_of(std::size_t value) const override { return choice_.last_unit(value); }
  std::uint64_t short_number() const override {
    const auto shortest = std::min_element(texts_.begin(), texts_.end(),
                                           [](const auto& a, const auto& b) { return a.size() < b.size(); });
    return number_of(static_cast<std::size_t>(shortest - texts_.begin()));
  }
  std::size_t most_tokens() const override { return most_tokens_; }
  void fill(std::span<const std::uint64_t> parts, SlotValues& out, ThreadPool&) const override {
    out.texts.clear();
    for (const std::uint64_t number : parts)
      out.texts.push_back(texts_[static_cast<std::size_t>(choice_.draw(number))]);
  }

 private:
  TokenTable choice_;
  std::vector<std::string> texts_;
  std::size_t most_tokens_;
};

// Whole numbers, each as likely as the others.
class RangeSlot final : public TemplateSlot {
 public:
  RangeSlot(std::int64_t first, std::size_t n, std::int64_t step, std::size_t digits,
            const Tokenizer& tokenizer)
      : first_(first), step_(step), n_(n), digits_(digits) {
    std::vector<std::string> ends;
    for (const std::size_t i : {std::size_t{0}, n / 2, n - 1}) ends.push_back(text(i));
    most_tokens_ = 1;
    for (const std::string& end : ends)
      most_tokens_ = std::max({most_tokens_, tokenizer.encode(end).size(), end.size()});
  }

  std::size_t n_values() const override { return n_; }
  std::uint64_t number_of(std::size_t value) const override {
    return static_cast<std::uint64_t>(((Product{value} << 64) + n_ - 1) / n_);
  }
  std::uint64_t short_number() const override {
    // The one nearest to zero, from above where there is one.
    const std::int64_t steps = first_ >= 0 ? 0 : (-first_ + step_ - 1) / step_;
    return number_of(std::min(static_cast<std::size_t>(steps), n_ - 1));
  }
  std::size_t most_tokens() const override { return most_tokens_; }
  void fill(std::span<const std::uint64_t> parts, SlotValues& out, ThreadPool&) const override {
    out.texts.clear();
    for (const std::uint64_t number : parts)
      out.texts.push_back(text(static_cast<std::size_t>((Product{number} * n_) >> 64)));
  }

 private:
  std::string text(std::size_t i) const {
    return fmt::format("{:0{}}", first_ + static_cast<std::int64_t>(i) * step_, digits_);
  }
  std::int64_t first_, step_;
  std::size_t n_, digits_, most_tokens_;
};

// Tokens of a table, `count` of them; spliced in as they are.
class TokensSlot final : public TemplateSlot {
 public:
  TokensSlot(TokenTable table, std::size_t count) : table_(std::move(table)), count_(count) {}

  bool is_tokens() const override { return true; }
  std::size_t n_parts() const override { return count_; }
  std::size_t n_values() const override { return table_.size(); }
  std::uint64_t number_of(std::size_t value) const override { return table_.last_unit(value); }
  std::size_t most_tokens() const override { return count_; }
  void fill(std::span<const std::uint64_t> parts, SlotValues& out, ThreadPool&) const override {
    out.tokens.assign(parts.size() / count_, std::vector<TokenId>(count_));
    for (std::size_t i = 0; i < parts.size(); ++i) out.tokens[i / count_][i % count_] = table_.draw(parts[i]);
  }

 private:
  TokenTable table_;
  std::size_t count_;
};

// The text of another law's inputs, special tokens left out.
class LawSlot final : public TemplateSlot {
 public:
  LawSlot(std::unique_ptr<InputLaw> law, Tokenizer tokenizer)
      : law_(std::move(law)), tokenizer_(std::move(tokenizer)) {}

  std::size_t n_parts() const override { return law_->facts().n_parts; }
  std::size_t n_values() const override { return 0; }
  std::uint64_t number_of(std::size_t) const override { return 0; }
  std::size_t most_tokens() const override { return law_->facts().max_length + 1; }
  void fill(std::span<const std::uint64_t> parts, SlotValues& out, ThreadPool& pool) const override {
    Inputs inputs;
    law_->make(parts, inputs, pool);
    out.texts.assign(inputs.size(), "");
    std::vector<TokenId> plain;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      plain.clear();
      for (const TokenId id : inputs.sequence(i))
        if (tokenizer_.has(id) && !tokenizer_.is_special(id)) plain.push_back(id);
      out.texts[i] = tokenizer_.decode(plain);
    }
  }

 private:
  std::unique_ptr<InputLaw> law_;
  Tokenizer tokenizer_;
};

std::int64_t whole_number(const JsonNode& node) {
  if (!node.value().is_number_integer() || node.value() > kMaxRange || node.value() < -kMaxRange)
    node.fail_expected("a whole number of at most fifteen digits");
  return node.value().get<std::int64_t>();
}

std::unique_ptr<TemplateSlot> read_range(LawReader& reader, const JsonNode& node) {
  expect_keys(node, {"range", "step", "digits"});
  const JsonNode range = node.at("range");
  if (range.array_size() != 2) range.fail_expected("[first, last]");
  const std::int64_t first = whole_number(range.element(0)), last = whole_number(range.element(1));
  const std::int64_t step = node.has("step") ? whole_number(node.at("step")) : 1;
  if (last < first) range.fail_expected("[first, last] with last not below first");
  if (step < 1) node.at("step").fail_expected("a whole number from 1 on");
  const std::size_t digits = node.has("digits") ? node.at("digits").count(1, 16) : 1;
  const auto n = static_cast<std::size_t>((last - first) / step + 1);
  return std::make_unique<RangeSlot>(first, n, step, digits, reader.tokenizer(node).tokenizer);
}

std::unique_ptr<TemplateSlot> read_ids(LawReader& reader, const JsonNode& node) {
  expect_keys(node, {"ids", "probabilities", "count"});
  std::vector<TokenId> ids = node.at("ids").token_ids(reader.subject(node).d_vocab);
  std::vector<double> p(ids.size(), 1.0 / static_cast<double>(std::max<std::size_t>(ids.size(), 1)));
  if (node.has("probabilities")) p = node.at("probabilities").numbers();
  const std::size_t count = node.has("count") ? node.at("count").count(1, kMaxTokenSlot) : 1;
  return std::make_unique<TokensSlot>(TokenTable("", std::move(ids), std::move(p), node.where()), count);
}

std::unique_ptr<TemplateSlot> read_table(LawReader& reader, const JsonNode& node) {
  expect_keys(node, {"table", "dist", "count"});
  Distribution dist = reader.distribution(node.at("dist"));
  check_same_tokens(TokenTables(dist), reader.subject(node), node.where());
  const std::size_t count = node.has("count") ? node.at("count").count(1, kMaxTokenSlot) : 1;
  for (TokenTable& table : dist.tables)
    if (table.name() == node.at("table").text()) return std::make_unique<TokensSlot>(std::move(table), count);
  node.at("table").fail_expected(fmt::format("a table of {}", printable(dist.name)));
}

std::unique_ptr<TemplateSlot> read_law_slot(LawReader& reader, const JsonNode& node) {
  expect_keys(node, {"law"});
  auto law = reader.law(node.at("law"));
  check_same_tokens(*law, reader.subject(node), node.where());
  return std::make_unique<LawSlot>(std::move(law), reader.tokenizer(node).tokenizer);
}

}  // namespace

std::unique_ptr<TemplateSlot> read_slot(LawReader& reader, const JsonNode& node) {
  const Tokenizer& tokenizer = reader.tokenizer(node).tokenizer;
  node.expect_object();
  if (node.has("list")) {
    expect_keys(node, {"list"});
    return std::make_unique<ListSlot>(read_list(node.at("list")), tokenizer, node.where());
  }
  if (node.has("file")) {
    expect_keys(node, {"file", "field", "weight"});
    return std::make_unique<ListSlot>(read_texts_file(reader, node), tokenizer, node.where());
  }
  if (node.has("range")) return read_range(reader, node);
  if (node.has("ids")) return read_ids(reader, node);
  if (node.has("table")) return read_table(reader, node);
  if (node.has("law")) return read_law_slot(reader, node);
  node.fail_expected("one of the keys list, file, range, ids, table, law");
}

}  // namespace deeptail
