// The file form deeptail-truth-1.
#include <algorithm>
#include <charconv>

#include "bench/truth.h"
#include "core/json.h"
#include "core/sha256.h"

namespace deeptail {

namespace {

constexpr std::string_view kFormat = "deeptail-truth-1";
constexpr TokenId kMaxToken = 1 << 24;

const Json& member(const Json& json, const char* key, std::string_view where) {
  const auto found = json.find(key);
  if (found == json.end()) throw InputError("{}: key \"{}\" is missing", where, key);
  return *found;
}

std::string text_member(const Json& json, const char* key, std::string_view where) {
  const Json& value = member(json, key, where);
  if (!value.is_string()) throw InputError("{}: key \"{}\": expected text", where, key);
  return value.get<std::string>();
}

std::string hash_member(const Json& json, const char* key, std::string_view where) {
  const std::string value = text_member(json, key, where);
  if (!value.empty() && !is_sha256_hex(value))
    throw InputError("{}: key \"{}\": expected 64 lower-case hex digits", where, key);
  return value;
}

std::uint64_t whole_number(const Json& value, std::string_view what, std::string_view where,
                           std::uint64_t least, std::uint64_t most) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() < least || value.get<std::uint64_t>() > most)
    throw InputError("{}: {}: expected a whole number from {} to {}, found {}", where, what, least, most,
                     printable(json_text(value, true)));
  return value.get<std::uint64_t>();
}

TokenId parse_token(const std::string& text, std::string_view where) {
  TokenId id = -1;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  const bool canonical =
      error == std::errc() && stop == text.data() + text.size() && fmt::format("{}", id) == text;
  if (!canonical || id < 0 || id >= kMaxToken)
    throw InputError("{}: counts: \"{}\" is not a token id", where, printable(text));
  return id;
}

std::vector<TruthRange> parse_ranges(const Json& json, std::string_view where) {
  const Json& value = member(json, "ranges", where);
  if (!value.is_array() || value.empty())
    throw InputError("{}: key \"ranges\": expected at least one range", where);
  std::vector<TruthRange> ranges;
  for (const Json& entry : value) {
    const std::string place = fmt::format("{}: range {}", where, ranges.size());
    if (!entry.is_object()) throw InputError("{}: expected source, seed, first and count", place);
    TruthRange range{.source = text_member(entry, "source", place)};
    range.seed = whole_number(member(entry, "seed", place), "seed", place, 0, ~std::uint64_t{0});
    range.first = whole_number(member(entry, "first", place), "first", place, 0, kMaxSamples - 1);
    range.count = whole_number(member(entry, "count", place), "count", place, 1, kMaxSamples - range.first);
    ranges.push_back(range);
  }
  if (const auto shared = sort_ranges(ranges))
    throw InputError("{}: {} overlaps {}", where, describe(shared->first), describe(shared->second));
  return ranges;
}

// Common to all ranges, or nothing.
template <class T>
const T* common(const std::vector<TruthRange>& ranges, T TruthRange::*field) {
  for (const TruthRange& range : ranges)
    if (range.*field != ranges.front().*field) return nullptr;
  return ranges.empty() ? nullptr : &(ranges.front().*field);
}

}  // namespace

Truth parse_truth(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  if (!json.is_object()) throw InputError("{}: expected a JSON object", where);
  if (const std::string format = text_member(json, "format", where); format != kFormat)
    throw InputError("{}: key \"format\": expected \"{}\", found \"{}\"", where, kFormat, printable(format));
  Truth truth{.model = text_member(json, "model", where), .dist = text_member(json, "dist", where)};
  truth.model_sha256 = hash_member(json, "model_sha256", where);
  truth.dist_sha256 = hash_member(json, "dist_sha256", where);
  const std::uint64_t samples =
      whole_number(member(json, "samples", where), "samples", where, 1, kMaxSamples);
  truth.ranges = parse_ranges(json, where);
  std::uint64_t left = samples;
  for (const TruthRange& range : truth.ranges) {
    if (range.count > left) throw InputError("{}: the ranges hold more than the {} samples", where, samples);
    left -= range.count;
  }
  if (left != 0)
    throw InputError("{}: the ranges hold {} samples fewer than the {} stated", where, left, samples);

  const Json& counts = member(json, "counts", where);
  if (!counts.is_object())
    throw InputError("{}: key \"counts\": expected an object of token id and count", where);
  left = samples;
  for (const auto& [token, value] : counts.items()) {
    const TokenId id = parse_token(token, where);
    const std::uint64_t count = whole_number(value, fmt::format("count of token {}", id), where, 1, samples);
    if (count > left) throw InputError("{}: the counts sum to more than the {} samples", where, samples);
    left -= count;
    truth.counts[id] = count;
  }
  if (left != 0) throw InputError("{}: the counts sum to {} less than the {} samples", where, left, samples);
  return truth;
}

Truth read_truth(const std::string& path) {
  const MappedFile file(path);
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
  out["ranges"] = OrderedJson::array();
  for (const TruthRange& r : truth.ranges)
    out["ranges"].push_back({{"source", r.source}, {"seed", r.seed}, {"first", r.first}, {"count", r.count}});
  OrderedJson& counts = out["counts"] = OrderedJson::object();
  for (const auto& [token, count] : truth.counts) append_field(counts, std::to_string(token), count);
  return json_text(out) + "\n";
}

}  // namespace deeptail
