// Who is ahead under which loss, and which of two values of a setting wins more often.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "report/lookup.h"
#include "report/order_tables.h"
#include "report/table_text.h"

namespace deeptail {

namespace {

// From even-handed to averse to underestimates.
constexpr std::size_t kOrderOfLosses[] = {kLogSquared, kBenchmarking, kItakuraSaito,
                                          kOversight,  kStress,       kAudit};

struct Ranked {
  double loss;
  std::string name;
};

std::vector<Ranked> ranked(const Report& r, std::size_t model, std::size_t loss) {
  std::vector<Ranked> out;
  for (const std::size_t v : headline_variants(r))
    if (const double mean = model_loss(r, model, v, loss).mean; !std::isnan(mean))
      out.push_back({mean, r.variants[v].name});
  std::stable_sort(out.begin(), out.end(), [](const Ranked& a, const Ranked& b) { return a.loss < b.loss; });
  return out;
}

// --- settings ---

using Words = std::vector<std::string>;

Words words_of(const std::string& name) {
  Words out(1);
  for (const char c : name)
    if (c == '/')
      out.emplace_back();
    else
      out.back() += c;
  return out;
}

std::optional<std::uint64_t> number_of(const std::string& word) {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && stop == word.data() + word.size() ? std::optional(value) : std::nullopt;
}

// On how many pairs of a model and a distribution, and settings that are otherwise alike, is `a` ahead?
struct Tally {
  std::array<std::size_t, kReportProfiles> wins = {};
  std::size_t cells = 0;
};

class Settings {
 public:
  Settings(const Report& r, const std::string& method) : r_(r) {
    for (std::size_t v = 0; v < r.variants.size(); ++v)
      if (r.variants[v].method == method) by_words_[words_of(r.variants[v].name)] = v;
  }
  // Settings of as many words, so that they can be told apart word by word.
  bool swept() const {
    return by_words_.size() > 1 && std::all_of(by_words_.begin(), by_words_.end(), [&](const auto& entry) {
             return entry.first.size() == by_words_.begin()->first.size();
           });
  }
  std::size_t words() const { return by_words_.begin()->first.size(); }
  std::set<std::string> values(std::size_t word) const {
    std::set<std::string> out;
    for (const auto& [words, v] : by_words_) out.insert(words[word]);
    return out;
  }
  // twice: `b` has twice as much of every setting that is a whole number.
  Tally compare(std::size_t word, const std::string& a, const std::string& b, bool twice) const {
    Tally out;
    for (const auto& [words, v] : by_words_) {
      if (words[word] != a) continue;
      Words other = words;
      other[word] = b;
      for (std::size_t w = 0; twice && w < other.size(); ++w)
        if (const auto number = number_of(other[w]); number && w != word)
          other[w] = std::to_string(2 * *number);
      if (const auto found = by_words_.find(other);
          found != by_words_.end() && (!twice || other != with(words, word, b)))
        add(v, found->second, out);
    }
    return out;
  }

 private:
  static Words with(Words words, std::size_t word, const std::string& value) {
    words[word] = value;
    return words;
  }
  void add(std::size_t a, std::size_t b, Tally& out) const {
    for (const ReportPair& pair : r_.pairs) {
      const Score *one = find_score(r_, pair.model, pair.dist, a),
                  *other = find_score(r_, pair.model, pair.dist, b);
      if (pair.scored == 0 || one == nullptr || other == nullptr) continue;
      ++out.cells;
      for (std::size_t k = 0; k < kReportProfiles; ++k)
        out.wins[k] += one->loss[k].mean < other->loss[k].mean;
    }
  }

  const Report& r_;
  std::map<Words, std::size_t> by_words_;
};

std::string tally_row(const std::string& what, const Tally& tally) {
  std::string out = fmt::format("| {} |", what);
  for (const std::size_t wins : tally.wins) out += fmt::format(" {} |", wins);
  return out + fmt::format(" {} |\n", tally.cells);
}

}  // namespace

std::string order_table(const Report& r) {
  std::string out = "Methods from the lowest loss to the highest, mean over the distributions.\n\n";
  for (std::size_t m = 0; m < r.models.size(); ++m) {
    out += fmt::format("### {}\n\n| Loss | order |\n|---|---|\n", markdown_text(r.models[m]));
    for (const std::size_t loss : kOrderOfLosses) {
      std::string order;
      for (const Ranked& entry : ranked(r, m, loss))
        order +=
            fmt::format("{}{} ({:.3g})", order.empty() ? "" : ", ", markdown_text(entry.name), entry.loss);
      out += fmt::format("| {} | {} |\n", loss_title(r, loss), order);
    }
    out += "\n";
  }
  return out;
}

std::string settings_table(const Report& r) {
  std::string out;
  std::set<std::string> methods;
  for (const ReportVariant& v : r.variants) methods.insert(v.method);
  for (const std::string& method : methods) {
    const Settings settings(r, method);
    if (!settings.swept()) continue;
    out += fmt::format(
        "{}: on how many pairs of a model and a distribution, with all other settings alike, the first has "
        "the "
        "lower loss.\n\n| |",
        markdown_text(method));
    std::string rule = "|---|";
    for (std::size_t k = 0; k < kReportProfiles; ++k) {
      out += fmt::format(" {} |", loss_title(r, k));
      rule += "---:|";
    }
    out += " of |\n" + rule + "---:|\n";
    for (std::size_t w = 1; w < settings.words(); ++w) {
      const std::set<std::string> values = settings.values(w);
      for (auto a = values.begin(); a != values.end(); ++a)
        for (auto b = std::next(a); b != values.end(); ++b) {
          out += tally_row(fmt::format("{}, not {}", markdown_text(*a), markdown_text(*b)),
                           settings.compare(w, *a, *b, false));
          const Tally twice = settings.compare(w, *a, *b, true);
          if (twice.cells > 0)
            out += tally_row(
                fmt::format("{}, not {} with twice the number", markdown_text(*a), markdown_text(*b)), twice);
        }
    }
    out += "\n";
  }
  return out;
}

}  // namespace deeptail
