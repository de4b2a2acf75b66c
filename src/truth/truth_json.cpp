// The file form deeptail-truth-1.
#include <algorithm>
#include <charconv>

#include "core/gzip.h"
#include "core/write_file.h"
#include "truth/truth.h"

namespace deeptail {

namespace {

constexpr std::string_view kFormat = "deeptail-truth-1";

TokenId parse_token(const std::string& text, std::string_view where) {
  TokenId id = -1;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  const bool canonical =
      error == std::errc() && stop == text.data() + text.size() && fmt::format("{}", id) == text;
  if (!canonical || id < 0 || id >= kMaxToken)
    throw InputError("{}: counts: \"{}\" is not a token id", where, printable(text));
  return id;
}

// Common to all ranges, or nothing.
template <class T>
const T* common(const std::vector<TruthRange>& ranges, T TruthRange::*field) {
  for (const TruthRange& range : ranges)
    if (range.*field != ranges.front().*field) return nullptr;
  return ranges.empty() ? nullptr : &(ranges.front().*field);
}

}  // namespace

std::string hash_or_none(const JsonNode& node) { return node.text().empty() ? "" : node.sha256(); }

std::vector<TruthRange> parse_ranges(const JsonNode& list, std::string_view where) {
  if (list.array_size() == 0) list.fail_expected("at least one range");
  std::vector<TruthRange> ranges;
  for (const JsonNode& entry : list.elements()) {
    TruthRange range{.source = entry.at("source").text()};
    range.seed = entry.at("seed").count(0, ~std::uint64_t{0});
    range.first = entry.at("first").count(0, kMaxSamples - 1);
    range.count = entry.at("count").count(1, kMaxSamples - range.first);
    ranges.push_back(range);
  }
  if (const auto shared = sort_ranges(ranges))
    throw InputError("{}: {} overlaps {}", where, describe(shared->first), describe(shared->second));
  return ranges;
}

OrderedJson json_of(const std::vector<TruthRange>& ranges) {
  OrderedJson out = OrderedJson::array();
  for (const TruthRange& r : ranges)
    out.push_back({{"source", r.source}, {"seed", r.seed}, {"first", r.first}, {"count", r.count}});
  return out;
}

Truth parse_truth(std::string_view text, std::string_view where) {
  if (is_compressed(text)) {
    const std::string plain = gunzipped(text, where);
    if (is_compressed(plain)) throw InputError("{}: compressed twice", where);
    return parse_truth(plain, where);
  }
  const Json json = parse_json(text, where);
  const JsonNode root(json, where);
  if (const JsonNode format = root.at("format"); format.text() != kFormat)
    format.fail_expected(fmt::format("\"{}\"", kFormat));
  Truth truth{.model = root.at("model").text(), .dist = root.at("dist").text()};
  truth.model_sha256 = hash_or_none(root.at("model_sha256"));
  truth.dist_sha256 = hash_or_none(root.at("dist_sha256"));
  const std::uint64_t samples = root.at("samples").count(1, kMaxSamples);
  truth.ranges = parse_ranges(root.at("ranges"), where);
  std::uint64_t left = samples;
  for (const TruthRange& range : truth.ranges) {
    if (range.count > left) throw InputError("{}: the ranges hold more than the {} samples", where, samples);
    left -= range.count;
  }
  if (left != 0)
    throw InputError("{}: the ranges hold {} samples fewer than the {} stated", where, left, samples);

  const JsonNode counts = root.at("counts");
  if (!counts.value().is_object()) counts.fail_expected("an object of token id and count");
  left = samples;
  for (const auto& [token, value] : counts.value().items()) {
    const TokenId id = parse_token(token, where);
    const std::uint64_t count = JsonNode(value, where, "counts." + token).count(1, samples);
    if (count > left) throw InputError("{}: the counts sum to more than the {} samples", where, samples);
    left -= count;
    truth.counts[id] = count;
  }
  if (left != 0) throw InputError("{}: the counts sum to {} less than the {} samples", where, left, samples);
  return truth;
}

Truth read_truth(const std::string& path) {
  const InputFile file(path);
  return parse_truth(file.text(), path);
}

std::string to_json(const Truth& truth) {
  OrderedJson out = {{"format", kFormat},
                     {"model", truth.model},
                     {"dist", truth.dist},
                     {"model_sha256", truth.model_sha256},
                     {"dist_sha256", truth.dist_sha256}};
  if (const auto* source = common(truth.ranges, &TruthRange::source)) out["source"] = *source;
  if (const auto* seed = common(truth.ranges, &TruthRange::seed)) out["seed"] = *seed;
  out["samples"] = truth.samples();
  out["ranges"] = json_of(truth.ranges);
  OrderedJson& counts = out["counts"] = OrderedJson::object();
  for (const auto& [token, count] : truth.counts) append_field(counts, std::to_string(token), count);
  return json_text(out) + "\n";
}

void write_truth(const std::string& path, const Truth& truth) {
  const std::string text = to_json(truth);
  write_file(path, path.ends_with(".gz") ? gzipped(text) : text);
}

}  // namespace deeptail
