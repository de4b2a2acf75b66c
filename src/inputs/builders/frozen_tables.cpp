#include "inputs/builders/frozen_tables.h"

#include <algorithm>
#include <numeric>

#include "core/json.h"
#include "inputs/distribution_json.h"

namespace deeptail {

namespace {

constexpr std::uint64_t kTotal = std::uint64_t{1} << 32;

std::string quoted(const std::string& text) { return json_text(Json(text), true); }

// The shortest text that gives this double again.
std::string number_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string table_text(const Frequencies& table) {
  std::vector<TokenId> ids;
  std::vector<double> frequencies;
  for (const auto& [id, frequency] : table) {
    ids.push_back(id);
    frequencies.push_back(frequency);
  }
  std::vector<std::string> probabilities;
  for (const std::uint64_t weight : quantise(frequencies))
    probabilities.push_back(number_text(static_cast<double>(weight) / static_cast<double>(kTotal)));
  return fmt::format("{{\"ids\":[{}],\"probabilities\":[{}]}}", fmt::join(ids, ","),
                     fmt::join(probabilities, ","));
}

}  // namespace

std::vector<std::uint64_t> quantise(std::span<const double> frequencies) {
  const double scale =
      static_cast<double>(kTotal) / std::accumulate(frequencies.begin(), frequencies.end(), 0.0);
  std::vector<std::uint64_t> weights;
  std::uint64_t sum = 0;
  for (const double frequency : frequencies) {
    weights.push_back(std::max<std::uint64_t>(1, static_cast<std::uint64_t>(frequency * scale)));
    sum += weights.back();
  }
  if (sum > kTotal) {  // those that were raised to 1 are paid for by the largest
    *std::max_element(weights.begin(), weights.end()) -= sum - kTotal;
    return weights;
  }
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto above = [&](std::size_t i) { return static_cast<double>(weights[i]) - frequencies[i] * scale; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return above(a) < above(b); });
  for (std::size_t i = 0; i < order.size() && sum < kTotal; ++i, ++sum) ++weights[order[i]];
  return weights;
}

void FrozenTables::add(const std::string& name, Frequencies table) {
  const auto same = [&](const auto& other) { return other.first == name; };
  if (std::none_of(tables_.begin(), tables_.end(), same)) tables_.emplace_back(name, std::move(table));
}

void FrozenTables::repeat(const std::string& name, std::size_t times) {
  positions_.insert(positions_.end(), times, name);
}

std::string FrozenTables::text(const Facts& facts) const {
  std::vector<std::string> tables, positions;
  for (const auto& [name, table] : tables_)
    tables.push_back(fmt::format("{}:{}", quoted(name), table_text(table)));
  for (const std::string& name : positions_) positions.push_back(quoted(name));
  return fmt::format(
      "{{\"format\":\"{}\",\"name\":{},\"description\":{},\"d_vocab\":{},\"tokenizer_sha256\":{},"
      "\"tables\":{{{}}},\"positions\":[{}]}}\n",
      kTablesFormat, quoted(facts.name), quoted(facts.description), facts.d_vocab,
      quoted(facts.tokenizer_sha256), fmt::join(tables, ","), fmt::join(positions, ","));
}

}  // namespace deeptail
