// The file form deeptail-hits-1: a header, then {"token": id, "range": place among the ranges, "inputs":
// [numbers]} for each token and range that has some, in order.
#include <algorithm>
#include <utility>

#include "truth/truth.h"

namespace deeptail {

namespace {

constexpr std::string_view kHitsFormat = "deeptail-hits-1";

// The text up to the next line's, which is cut off.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(text.size(), end + 1));
  return line;
}

TruthHits parse_header(std::string_view line, std::string_view where) {
  const Json json = parse_json(line, where);
  const JsonNode root(json, where);
  if (const JsonNode format = root.at("format"); format.text() != kHitsFormat)
    format.fail_expected(fmt::format("\"{}\"", kHitsFormat));
  TruthHits hits{.model = root.at("model").text(), .dist = root.at("dist").text()};
  hits.model_sha256 = hash_or_none(root.at("model_sha256"));
  hits.dist_sha256 = hash_or_none(root.at("dist_sha256"));
  hits.most = root.at("most").count(1, kMaxSamples);
  hits.ranges = parse_ranges(root.at("ranges"), where);
  return hits;
}

void parse_inputs(std::string_view line, std::string_view where, TruthHits& hits) {
  const Json json = parse_json(line, where);
  const JsonNode root(json, where);
  const TokenId token = root.at("token").token_id(kMaxToken);
  const auto range = static_cast<std::uint32_t>(root.at("range").count(0, hits.ranges.size() - 1));
  const JsonNode numbers = root.at("inputs");
  if (numbers.array_size() == 0) numbers.fail_expected("at least one input");
  if (!hits.inputs.empty() && token < hits.inputs.rbegin()->first)
    throw InputError("{}: token {} comes after token {}", where, token, hits.inputs.rbegin()->first);
  std::vector<HitInput>& inputs = hits.inputs[token];
  const TruthRange& of = hits.ranges[range];
  for (const JsonNode& number : numbers.elements()) {
    const HitInput next{range, number.count(of.first, of.end() - 1)};
    if (!inputs.empty() && next <= inputs.back())
      throw InputError("{}: token {}: input {} does not come after the one before it", where, token,
                       next.number);
    inputs.push_back(next);
  }
  if (inputs.size() > hits.most)
    throw InputError("{}: token {} has {} inputs, more than the {} stated", where, token, inputs.size(),
                     hits.most);
}

}  // namespace

std::string hits_path(const std::string& counts_path) { return counts_path + ".hits"; }

TruthHits parse_hits(std::string_view text, std::string_view where) {
  TruthHits hits = parse_header(take_line(text), where);
  for (std::size_t line = 2; !text.empty(); ++line)
    parse_inputs(take_line(text), fmt::format("{}: line {}", where, line), hits);
  return hits;
}

TruthHits read_hits(const std::string& path) {
  const InputFile file(path);
  return parse_hits(file.text(), path);
}

std::string to_jsonl(const TruthHits& hits) {
  const OrderedJson header = {{"format", kHitsFormat},
                              {"model", hits.model},
                              {"dist", hits.dist},
                              {"model_sha256", hits.model_sha256},
                              {"dist_sha256", hits.dist_sha256},
                              {"most", hits.most},
                              {"ranges", json_of(hits.ranges)}};
  std::string out = json_text(header) + "\n";
  for (const auto& [token, inputs] : hits.inputs)
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool starts = i == 0 || inputs[i].range != inputs[i - 1].range;
      const bool ends = i + 1 == inputs.size() || inputs[i].range != inputs[i + 1].range;
      if (starts) out += fmt::format("{{\"token\":{},\"range\":{},\"inputs\":[", token, inputs[i].range);
      out += fmt::format("{}{}", inputs[i].number, ends ? "]}\n" : ",");
    }
  return out;
}

void check_hits_of(const TruthHits& hits, std::string_view where, const Truth& truth) {
  if (hits.model_sha256 != truth.model_sha256 || hits.dist_sha256 != truth.dist_sha256 ||
      hits.ranges != truth.ranges)
    throw InputError("{}: inputs of another count than the one beside it", where);
  for (const auto& [token, count] : truth.counts) {
    const auto found = hits.inputs.find(token);
    const std::size_t kept = found == hits.inputs.end() ? 0 : found->second.size();
    if (kept != std::min(count, hits.most))
      throw InputError("{}: {} inputs of token {}, expected {}", where, kept, token,
                       std::min(count, hits.most));
  }
  for (const auto& [token, inputs] : hits.inputs)
    if (truth.count(token) == 0) throw InputError("{}: token {} was not counted", where, token);
}

}  // namespace deeptail
