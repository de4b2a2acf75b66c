#include "pair_table.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

namespace deeptail::modes {

namespace {

constexpr const char* kFormat = "deeptail-pairs-1";
constexpr int kBase = 64;

struct Grid {
  double mean = 0.0, mean_step = 1.0, spread = 0.0, spread_step = 1.0;
};

char digit(int value) { return static_cast<char>('0' + value); }

void put(std::string& text, const PairMargin& m, const Grid& grid) {
  const int mean = static_cast<int>(std::lround((m.mean - grid.mean) / grid.mean_step));
  const int spread = static_cast<int>(std::lround((m.spread - grid.spread) / grid.spread_step));
  text += {digit(mean / kBase), digit(mean % kBase), digit(spread)};
}

PairMargin take(const std::string& text, std::size_t i, const Grid& grid, const std::string& path) {
  int values[3];
  for (std::size_t k = 0; k < 3; ++k) {
    values[k] = text[3 * i + k] - '0';
    if (values[k] < 0 || values[k] >= kBase) throw InputError("{}: a character that is no digit", path);
  }
  return {grid.mean + grid.mean_step * (values[0] * kBase + values[1]),
          grid.spread + grid.spread_step * values[2]};
}

template <class Visit>
void for_each_margin(const PairTable& table, const Visit& visit) {
  for (const PairRow& row : table.rows) {
    visit(row.any);
    for (const PairMargin& m : row.by_second) visit(m);
  }
}

Grid grid_of(const PairTable& table) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  double low[2] = {kInf, kInf}, high[2] = {-kInf, -kInf};
  for_each_margin(table, [&](const PairMargin& m) {
    low[0] = std::min(low[0], m.mean), high[0] = std::max(high[0], m.mean);
    low[1] = std::min(low[1], m.spread), high[1] = std::max(high[1], m.spread);
  });
  return {low[0], (high[0] - low[0]) / (kBase * kBase - 1), low[1], (high[1] - low[1]) / (kBase - 1)};
}

}  // namespace

void write_pairs(const std::string& path, const PairTable& table, const Distribution& dist) {
  const Grid g = grid_of(table);
  std::ofstream out(path);
  out << fmt::format("{} {} {} {}\n{} {} {:.6g} {:.6g} {:.6g} {:.6g}\n", kFormat, table.model, table.dist,
                     table.target, table.second, table.last, g.mean, g.mean_step, g.spread, g.spread_step);
  for (std::size_t b = 0; b < table.rows.size(); ++b) {
    std::string text;
    put(text, table.rows[b].any, g);
    if (!table.rows[b].by_second.empty()) text += ' ';
    for (const PairMargin& m : table.rows[b].by_second) put(text, m, g);
    out << dist.table(table.last).ids()[b] << ' ' << text << '\n';
  }
  if (!out.flush()) throw InputError("{}: cannot be written", path);
}

PairTable read_pairs(const std::string& path, const Distribution& dist) {
  std::ifstream in(path);
  PairTable table;
  Grid g;
  std::string format, line;
  in >> format >> table.model >> table.dist >> table.target >> table.second >> table.last;
  in >> g.mean >> g.mean_step >> g.spread >> g.spread_step;
  if (!in || format != kFormat || table.dist != dist.name || table.second >= dist.length() ||
      table.last >= dist.length())
    throw InputError("{}: expected a table of pairs of {}, made by modes_scan", path, dist.name);
  std::getline(in, line);
  const std::vector<TokenId>& ids = dist.table(table.last).ids();
  const std::size_t n_second = dist.table(table.second).size();
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    TokenId id = -1;
    std::string any, pairs;
    fields >> id >> any >> pairs;
    const std::size_t b = table.rows.size();
    if (b == ids.size() || id != ids[b] || any.size() != 3 ||
        (!pairs.empty() && pairs.size() != 3 * n_second))
      throw InputError("{}: row {} does not fit the tokens of {}", path, b, dist.name);
    PairRow& row = table.rows.emplace_back(PairRow{take(any, 0, g, path)});
    for (std::size_t a = 0; a < pairs.size() / 3; ++a) row.by_second.push_back(take(pairs, a, g, path));
  }
  if (table.rows.size() != ids.size())
    throw InputError("{}: {} rows, expected {}", path, table.rows.size(), ids.size());
  return table;
}

}  // namespace deeptail::modes
