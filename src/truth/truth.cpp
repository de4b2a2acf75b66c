#include "truth/truth.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "core/data_places.h"
#include "core/json.h"

namespace deeptail {

std::uint64_t Truth::samples() const {
  std::uint64_t sum = 0;
  for (const TruthRange& range : ranges) sum += range.count;
  return sum;
}

std::uint64_t Truth::count(TokenId token) const {
  const auto found = counts.find(token);
  return found == counts.end() ? 0 : found->second;
}

std::string describe(const TruthRange& range) {
  return fmt::format("{} seed {}, inputs {} to {}", range.source, range.seed, range.first, range.end() - 1);
}

std::optional<std::string> find_truth(const std::string& file_name) {
  std::error_code error;
  for (const std::filesystem::path& place : data_places("truth"))
    for (const std::string& name : {file_name, file_name + ".gz"})
      if (std::filesystem::is_regular_file(place / name, error)) return (place / name).string();
  return std::nullopt;
}

std::string truth_name(const std::string& model, const std::string& dist) {
  return fmt::format("{}-{}.json", model, dist);
}

std::string truth_path(const std::string& name, const std::string& model, const std::string& dist) {
  if (name.find('/') != std::string::npos) return name;
  if (const auto found = find_truth(name)) return *found;
  throw InputError(
      "truth {} of {} on {}: not found in $DEEPTAIL_HOME/truth, ./truth or beside the program; count it "
      "first",
      name, model, dist)
      .with_hint(Hint::kCountTruth);
}

std::string_view drawn_by(const TruthRange& range) {
  return range.source == kFp16Source ? "deeptail" : std::string_view(range.source);
}

bool ByPlace::operator()(const TruthRange& a, const TruthRange& b) const {
  return std::tuple(drawn_by(a), a.seed, a.first, a.count) <
         std::tuple(drawn_by(b), b.seed, b.first, b.count);
}

bool share_inputs(const TruthRange& a, const TruthRange& b) {
  return drawn_by(a) == drawn_by(b) && a.seed == b.seed && a.first < b.end() && b.first < a.end();
}

std::optional<std::pair<TruthRange, TruthRange>> sort_ranges(std::vector<TruthRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(), ByPlace());
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (share_inputs(ranges[i - 1], ranges[i])) return std::pair{ranges[i - 1], ranges[i]};
  return std::nullopt;
}

void join_ranges(std::vector<TruthRange>& ranges) {
  std::vector<TruthRange> joined;
  for (const TruthRange& range : ranges) {
    if (!joined.empty() && joined.back().source == range.source && joined.back().seed == range.seed &&
        joined.back().end() == range.first)
      joined.back().count += range.count;
    else
      joined.push_back(range);
  }
  ranges = std::move(joined);
}

void check_same_subject(const Truth& a, std::string_view where_a, const Truth& b, std::string_view where_b) {
  const auto same = [&](const char* what, const std::string& name_a, const std::string& hash_a,
                        const std::string& name_b, const std::string& hash_b) {
    // Names of equal hashes may differ (a folder can be renamed); without hashes the names must do.
    const bool equal = hash_a.empty() && hash_b.empty() ? name_a == name_b : hash_a == hash_b;
    if (!equal)
      throw InputError("{} and {}: different {}: {} (SHA-256 {:.12}) and {} (SHA-256 {:.12})", where_a,
                       where_b, what, name_a, hash_a.empty() ? "unknown" : hash_a, name_b,
                       hash_b.empty() ? "unknown" : hash_b);
  };
  same("models, by their weights or config.json", a.model, a.model_sha256, b.model, b.model_sha256);
  same("distributions", a.dist, a.dist_sha256, b.dist, b.dist_sha256);
}

Truth read_counts_of(const Provenance& subject, std::size_t d_vocab, const std::string& path) {
  const bool own = path.ends_with(".json") || path.ends_with(".json.gz");
  Truth truth = own ? read_truth(path) : import_truth(path, subject.model, subject.dist);
  const auto same = [&](const char* what, const std::string& counted_name, const std::string& counted,
                        const std::string& name, const std::string& named) {
    if (!counted.empty() && counted != named)
      throw InputError(
          "{}: counts of another {} than {}{} (SHA-256 {:.12}, expected {:.12})", path, what, name,
          std::string_view(what) == "model" ? ": its weights or its config.json differ" : "", counted, named);
    if (counted.empty() && counted_name != name)  // imported: the names must do
      throw InputError("{}: counts of the {} {}, expected {}", path, what, printable(counted_name), name);
  };
  same("model", truth.model, truth.model_sha256, subject.model, subject.model_sha256);
  same("distribution", truth.dist, truth.dist_sha256, subject.dist, subject.dist_sha256);
  if (!truth.counts.empty() && static_cast<std::uint64_t>(truth.counts.rbegin()->first) >= d_vocab)
    throw InputError("{}: counts token {}, but {} has {} tokens", path, truth.counts.rbegin()->first,
                     subject.model, d_vocab);
  return truth;
}

}  // namespace deeptail
