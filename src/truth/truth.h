// Where truth files lie, ranges of sample numbers.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "core/json_node.h"
#include "deeptail/truth.h"

namespace deeptail {

// Largest number of samples in a file, and of a sample's number.
inline constexpr std::uint64_t kMaxSamples = std::uint64_t{1} << 62;

// The file of this name in the folders called truth, or that with .gz behind it. Nothing where there is none.
std::optional<std::string> find_truth(const std::string& file_name);
std::string truth_name(const std::string& model, const std::string& dist);  // "dt-1l-hex.json"
// Likewise of a file that must be there, or the path itself where `name` is one. Throws InputError.
std::string truth_path(const std::string& name, const std::string& model, const std::string& dist);

// Who drew the inputs: sources that differ only in how they decide what is said draw the same ones.
std::string_view drawn_by(const TruthRange& range);

// Of files: the ranges without overlaps, sorted; a hash, or "" where it is not known.
std::vector<TruthRange> parse_ranges(const JsonNode& list, std::string_view where);
std::string hash_or_none(const JsonNode& node);
OrderedJson json_of(const std::vector<TruthRange>& ranges);
inline constexpr TokenId kMaxToken = 1 << 24;

// The order of ranges: those of one source and seed are together, by their first input.
struct ByPlace {
  bool operator()(const TruthRange& a, const TruthRange& b) const;
};
bool share_inputs(const TruthRange& a, const TruthRange& b);
// Sorts; the first two ranges that share inputs, if any.
std::optional<std::pair<TruthRange, TruthRange>> sort_ranges(std::vector<TruthRange>& ranges);
// Neighbours of sorted ranges that touch become one.
void join_ranges(std::vector<TruthRange>& ranges);

// Throws InputError unless both count the same model on the same distribution.
void check_same_subject(const Truth& a, std::string_view where_a, const Truth& b, std::string_view where_b);
// A file of either form: deeptail-truth-1, or a tensor of counts. Throws InputError unless it counts this
// model on this distribution.
Truth read_counts_of(const Provenance& subject, std::size_t d_vocab, const std::string& path);

}  // namespace deeptail
