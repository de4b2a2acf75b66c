// Mixtures: part 0 chooses a law, which reads the others.
#include <algorithm>

#include "inputs/law_reader.h"
#include "inputs/weighted_texts.h"

namespace deeptail {

namespace {

class MixtureLaw final : public InputLaw {
 public:
  MixtureLaw(LawFacts facts, std::vector<std::unique_ptr<InputLaw>> laws, TokenTable choice)
      : facts_(std::move(facts)), laws_(std::move(laws)), choice_(std::move(choice)) {
    for (const auto& law : laws_) {
      facts_.n_parts = std::max(facts_.n_parts, law->facts().n_parts + 1);
      facts_.max_length = std::max(facts_.max_length, law->facts().max_length);
    }
    first_.assign(facts_.n_parts, kNone);
    for (const auto& law : laws_)
      for (const std::size_t part : law->free_parts())
        first_[part + 1] = std::min(first_[part + 1], law->first_position(part));
    if (laws_.size() > 1) first_[0] = shared_prefix();
    facts_.summary = fmt::format("{} laws, up to {} tokens", laws_.size(), facts_.max_length);
  }

  const LawFacts& facts() const override { return facts_; }

  void make(std::span<const std::uint64_t> parts, Inputs& out, ThreadPool& pool) const override {
    const std::size_t n_parts = facts_.n_parts, n = parts.size() / n_parts;
    out.resize(n, facts_.max_length);
    std::vector<std::vector<std::size_t>> chosen(laws_.size());  // which inputs each law makes
    for (std::size_t i = 0; i < n; ++i)
      chosen[static_cast<std::size_t>(choice_.draw(parts[i * n_parts]))].push_back(i);
    Inputs made;
    std::vector<std::uint64_t> own;
    for (std::size_t l = 0; l < laws_.size(); ++l) {
      if (chosen[l].empty()) continue;
      own.clear();
      for (const std::size_t i : chosen[l]) {
        const auto from = parts.begin() + static_cast<std::ptrdiff_t>(i * n_parts + 1);
        own.insert(own.end(), from, from + static_cast<std::ptrdiff_t>(laws_[l]->facts().n_parts));
      }
      laws_[l]->make(own, made, pool);
      for (std::size_t k = 0; k < chosen[l].size(); ++k) {
        const auto from = made.sequence(k);
        const auto to = out.row(chosen[l][k]);
        std::fill(std::copy(from.begin(), from.end(), to.begin()), to.end(), 0);
        out.lengths[chosen[l][k]] = made.lengths[k];
      }
    }
  }

  std::size_t first_position(std::size_t part) const override {
    return first_[part] == kNone ? facts_.max_length - 1 : first_[part];
  }
  std::vector<std::size_t> free_parts() const override {
    std::vector<std::size_t> free;
    for (std::size_t part = 0; part < first_.size(); ++part)
      if (first_[part] != kNone) free.push_back(part);
    return free;
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  // What all inputs of all laws begin with.
  std::size_t shared_prefix() const {
    ThreadPool pool(1);
    std::vector<TokenId> shared = constant_prefix(*laws_.front(), pool);
    for (const auto& law : laws_) {
      const std::vector<TokenId> other = constant_prefix(*law, pool);
      shared.erase(std::mismatch(shared.begin(), shared.end(), other.begin(), other.end()).first,
                   shared.end());
    }
    return shared.size();
  }

  LawFacts facts_;
  std::vector<std::unique_ptr<InputLaw>> laws_;
  TokenTable choice_;
  std::vector<std::size_t> first_;  // [n_parts]; kNone: changes nothing
};

}  // namespace

std::unique_ptr<InputLaw> read_mixture(LawReader& reader, const JsonNode& json) {
  expect_keys(json, {"format", "name", "description", "kind", "laws"});
  const JsonNode list = json.at("laws");
  if (list.array_size() == 0) list.fail_expected("at least one law");
  reader.tokenizer(json);
  std::vector<std::unique_ptr<InputLaw>> laws;
  std::vector<double> weights;
  for (const JsonNode& item : list.elements()) {
    expect_keys(item, {"law", "weight"});
    laws.push_back(reader.law(item.at("law")));
    check_same_tokens(*laws.back(), reader.subject(json), item.where());
    weights.push_back(item.has("weight") ? item.at("weight").number() : 1.0);
    if (!(weights.back() > 0.0)) item.at("weight").fail_expected("a number above 0");
  }
  TokenTable choice = choice_of(laws.size(), weights, list.where());
  return std::make_unique<MixtureLaw>(reader.facts(json, "mixture"), std::move(laws), std::move(choice));
}

}  // namespace deeptail
