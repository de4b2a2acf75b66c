// modes_scan MODEL DISTRIBUTION TARGET.. --out FOLDER: makes the tables of pairs that `modes` reads.
//
// Every last token gets its margin over 32 contexts drawn from the law. The last tokens that promise most for
// a target get one for each second-last token too, over 16 contexts: all of them where the table is small.
// The tables here: hex 272 414 723 1013; caps 340 890 3916; english 3037; english 411 --also 956, the last
// token of a rare pair that the others hide; spanish 91 2171; all of dt-1l.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/statistics.h"
#include "deeptail/load.h"
#include "pair_table.h"

namespace {

using namespace deeptail;
using namespace deeptail::modes;

constexpr std::size_t kContexts = 32, kPairContexts = 16, kSmallTable = 128, kDetailed = 8, kBatch = 512;
constexpr std::uint64_t kSeed = 21;

struct Moments {
  double n = 0.0, sum = 0.0, squares = 0.0;
  void add(double x) { n += 1.0, sum += x, squares += x * x; }
  double mean() const { return sum / n; }
  double variance() const { return std::max(0.0, squares - sum * sum / n) / (n - 1.0); }
};

// The logit of each target less the largest other one.
class Margins {
 public:
  Margins(const LoadedModel& model, const Distribution& dist, std::vector<TokenId> targets, ThreadPool& pool)
      : model_(model), dist_(dist), targets_(std::move(targets)), pool_(pool) {}
  // visit(i, target number, margin) for each input of tokens: [n, length].
  template <class Visit>
  void run(const std::vector<TokenId>& tokens, const Visit& visit) {
    const std::size_t length = dist_.length(), n = tokens.size() / length;
    const std::size_t d_model = model_.config().d_model, d_vocab = model_.config().d_vocab;
    AlignedVector<float> resid(kBatch * d_model), out(kBatch * d_vocab);
    for (std::size_t first = 0; first < n; first += kBatch) {
      const std::size_t m = std::min(kBatch, n - first);
      const TokenBatch batch = TokenBatch{tokens, length}.part(first, m);
      final_residuals(model_.transformer, batch, pool_, {resid.data(), d_model});
      logits(model_.head(), m, {resid.data(), d_model}, pool_, {out.data(), d_vocab});
      for (std::size_t i = 0; i < m; ++i) {
        const float* row = out.data() + i * d_vocab;
        for (std::size_t t = 0; t < targets_.size(); ++t) {
          const auto id = static_cast<std::size_t>(targets_[t]);
          const float other =
              std::max(*std::max_element(row, row + id), *std::max_element(row + id + 1, row + d_vocab));
          visit(first + i, t, static_cast<double>(row[id] - other));
        }
      }
    }
  }

 private:
  const LoadedModel& model_;
  const Distribution& dist_;
  std::vector<TokenId> targets_;
  ThreadPool& pool_;
};

struct Scan {
  const LoadedModel& model;
  const Distribution& dist;
  std::vector<TokenId> targets;
  std::vector<TokenId> also;  // last tokens
  std::size_t second, last;
  ThreadPool& pool;
};

// n_contexts inputs of the law for each way to set tokens of it.
template <class Set>
std::vector<TokenId> contexts(const Scan& scan, std::size_t n_contexts, std::size_t n_ways, const Set& set) {
  const std::size_t length = scan.dist.length();
  std::vector<TokenId> drawn(n_contexts * length), tokens;
  sample_range(scan.dist, kSeed, 0, scan.pool, drawn);
  for (std::size_t way = 0; way < n_ways; ++way)
    for (std::size_t c = 0; c < n_contexts; ++c) {
      const auto from = drawn.begin() + static_cast<std::ptrdiff_t>(c * length);
      tokens.insert(tokens.end(), from, from + static_cast<std::ptrdiff_t>(length));
      set(way, tokens.data() + tokens.size() - length);
    }
  return tokens;
}

// [targets][last tokens]
std::vector<std::vector<Moments>> scan_last(const Scan& scan) {
  const std::vector<TokenId>& ids = scan.dist.table(scan.last).ids();
  std::vector<std::vector<Moments>> moments(scan.targets.size(), std::vector<Moments>(ids.size()));
  const auto tokens = contexts(scan, kContexts, ids.size(),
                               [&](std::size_t b, TokenId* input) { input[scan.last] = ids[b]; });
  Margins(scan.model, scan.dist, scan.targets, scan.pool)
      .run(tokens, [&](std::size_t i, std::size_t t, double m) { moments[t][i / kContexts].add(m); });
  return moments;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// Spreads of few contexts lean on what is usual.
PairMargin margin_of(const Moments& m, double usual_variance) {
  constexpr double kPrior = 4.0;
  const double variance = ((m.n - 1.0) * m.variance() + kPrior * usual_variance) / (m.n - 1.0 + kPrior);
  return {m.mean(), std::max(0.05, std::sqrt(variance))};
}

double usual_variance(const std::vector<Moments>& all) {
  std::vector<double> variances;
  for (const Moments& m : all) variances.push_back(m.variance());
  return median(variances);
}

// The last tokens that promise most of the event.
std::vector<std::size_t> best_last(const Scan& scan, const PairTable& table) {
  const TokenTable& tokens = scan.dist.table(scan.last);
  std::vector<std::size_t> order(tokens.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (tokens.size() <= kSmallTable) return order;
  const auto promise = [&](std::size_t b) {
    const PairMargin& m = table.rows[b].any;
    return tokens.probability(b) * normal_tail(-m.mean / (1.3 * m.spread));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t x, std::size_t y) { return promise(x) > promise(y); });
  order.resize(kDetailed);
  for (std::size_t b = 0; b < tokens.size(); ++b)
    if (std::ranges::count(scan.also, tokens.ids()[b]) > std::ranges::count(order, b)) order.push_back(b);
  return order;
}

void scan_pairs(const Scan& scan, std::size_t t, PairTable& table) {
  const std::vector<TokenId>&a_ids = scan.dist.table(scan.second).ids(),
        &b_ids = scan.dist.table(scan.last).ids();
  Scan one = scan;
  one.targets = {scan.targets[t]};
  for (const std::size_t b : best_last(scan, table)) {
    std::vector<Moments> moments(a_ids.size());
    const auto tokens = contexts(scan, kPairContexts, a_ids.size(), [&](std::size_t a, TokenId* input) {
      input[scan.second] = a_ids[a];
      input[scan.last] = b_ids[b];
    });
    Margins(one.model, one.dist, one.targets, one.pool)
        .run(tokens, [&](std::size_t i, std::size_t, double m) { moments[i / kPairContexts].add(m); });
    const double usual = usual_variance(moments);
    for (const Moments& m : moments) table.rows[b].by_second.push_back(margin_of(m, usual));
  }
}

void scan(const std::string& model_name, const std::string& dist_name, const std::vector<TokenId>& targets,
          const std::vector<TokenId>& also, const std::string& out) {
  const LoadedModel model = load_model(model_name);
  const Distribution dist = load_distribution(dist_name, model);
  ThreadPool pool;
  const std::vector<std::size_t> free = free_positions(dist);
  const Scan scan{model, dist, targets, also, free[free.size() - 2], free.back(), pool};
  const auto by_last = scan_last(scan);
  for (std::size_t t = 0; t < targets.size(); ++t) {
    PairTable table{.model = model.name,
                    .dist = dist.name,
                    .target = targets[t],
                    .second = scan.second,
                    .last = scan.last};
    const double usual = usual_variance(by_last[t]);
    for (const Moments& m : by_last[t]) table.rows.push_back({margin_of(m, usual)});
    scan_pairs(scan, t, table);
    write_pairs(fmt::format("{}/{}-{}.txt", out, dist.name, targets[t]), table, dist);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Scans a model's margins by the last two tokens");
  std::string model, dist, out = ".";
  std::vector<TokenId> targets, also;
  app.add_option("model", model)->required();
  app.add_option("distribution", dist)->required();
  app.add_option("targets", targets)->required();
  app.add_option("--also", also, "Last tokens to look at closely");
  app.add_option("--out", out);
  CLI11_PARSE(app, argc, argv);
  try {
    scan(model, dist, targets, also, out);
  } catch (const InputError& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 2;
  }
}
