#include "semi_synthetic.h"

#include <cmath>
#include <utility>

namespace deeptail::modes {

namespace {

constexpr double kThirdLast = 0.4;
constexpr std::size_t kEffects = 14;

// The third-last free position and those before it.
std::vector<Part> context_parts(const Distribution& dist) {
  std::vector<std::size_t> free = free_positions(dist);
  free.resize(free.size() - 2);
  const std::size_t n = std::min(kEffects, free.size());
  std::vector<Part> parts = {{free.back(), kThirdLast}};
  for (std::size_t i = 1; i < n; ++i)
    parts.push_back({free[free.size() - 1 - i], (1.0 - kThirdLast) / static_cast<double>(n - 1)});
  return parts;
}

// Token id to its place in the table.
std::vector<std::uint32_t> places(const TokenTable& table, std::size_t d_vocab) {
  std::vector<std::uint32_t> out(d_vocab, 0);
  for (std::size_t i = 0; i < table.size(); ++i)
    out[static_cast<std::size_t>(table.ids()[i])] = static_cast<std::uint32_t>(i);
  return out;
}

Row row_of(const PairMargin& m, double shift, double prior) {
  const double least = -(m.mean + shift) / m.spread * kUnitsPerSd;
  return {m.spread, static_cast<std::int64_t>(std::ceil(least)), prior};
}

}  // namespace

Lock pair_lock(const Distribution& dist, const PairTable& table, double shift) {
  const TokenTable &second = dist.table(table.second), &last = dist.table(table.last);
  Lock lock;
  std::vector<std::pair<std::size_t, std::size_t>> start;  // [last tokens]: first row, 1 where a matters
  for (std::size_t b = 0; b < table.rows.size(); ++b) {
    const PairRow& row = table.rows[b];
    start.push_back({lock.rows.size(), row.by_second.empty() ? 0 : 1});
    if (row.by_second.empty()) lock.rows.push_back(row_of(row.any, shift, last.probability(b)));
    for (std::size_t a = 0; a < row.by_second.size(); ++a)
      lock.rows.push_back(row_of(row.by_second[a], shift, last.probability(b) * second.probability(a)));
    lock.group.resize(lock.rows.size(), b);
  }
  lock.row_of = [start = std::move(start), a = places(second, dist.d_vocab), b = places(last, dist.d_vocab),
                 at_a = table.second, at_b = table.last](std::span<const TokenId> tokens) {
    const auto [first, step] = start[b[static_cast<std::size_t>(tokens[at_b])]];
    return first + step * a[static_cast<std::size_t>(tokens[at_a])];
  };
  return lock;
}

double shift_for(const Distribution& dist, const PairTable& table, const ContextSum& context, double wanted) {
  const auto p = [&](double shift) {
    double sum = 0.0;
    for (const Row& row : pair_lock(dist, table, shift).rows) sum += row.prior * context.tail(row.threshold);
    return sum;
  };
  double low = -100.0, high = 100.0;
  for (int i = 0; i < 24; ++i) {
    const double middle = 0.5 * (low + high);
    (p(middle) < wanted ? low : high) = middle;
  }
  return high;
}

std::unique_ptr<const Problem> semi_synthetic(const Distribution& dist, const PairTable& table,
                                              double wanted) {
  const auto parts = context_parts(dist);
  ContextSum context(dist, parts, static_cast<std::uint64_t>(table.target));
  Lock lock = pair_lock(dist, table, shift_for(dist, table, context, wanted));
  return std::make_unique<const Problem>(dist.name,
                                         fmt::format("{}-{}-{:.0e}", dist.name, table.target, wanted), dist,
                                         std::move(context), std::move(lock));
}

Problems semi_synthetic_problems(const std::string& root) {
  constexpr std::pair<const char*, TokenId> kTables[] = {
      {"hex", 272},   {"hex", 414},     {"hex", 723},      {"hex", 1013},   {"caps", 340},    {"caps", 890},
      {"caps", 3916}, {"english", 411}, {"english", 3037}, {"spanish", 91}, {"spanish", 2171}};
  Problems out;
  for (const auto& [name, target] : kTables) {
    const Distribution dist = load_distribution(fmt::format("{}/distributions/{}.json", root, name));
    const PairTable table =
        read_pairs(fmt::format("{}/tests/statistical/modes/tables/{}-{}.txt", root, name, target), dist);
    for (const double wanted : {1e-5, 1e-7, 1e-9}) out.push_back(semi_synthetic(dist, table, wanted));
  }
  return out;
}

}  // namespace deeptail::modes
