#include "constructed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace deeptail::modes {

namespace {

constexpr std::size_t kContext = 14;
constexpr double kStrongest = 0.4;  // of the context's last position
constexpr TokenId kStart = 4095;
constexpr std::size_t kVocab = 4096;

const char* name_of(Tables tables) { return tables == Tables::kPeaked ? "peaked" : "wide"; }

std::vector<double> probabilities(Tables tables) {
  std::vector<double> p;
  if (tables == Tables::kWide) {
    for (int i = 0; i < 1000; ++i) p.push_back(1.0 / (i + 3.0));
  } else {
    p.assign(16, 0.056);
    p.insert(p.end(), 64, 1.5e-3);
    for (int i = 0; i < 24; ++i) p.push_back(1e-4 * std::pow(10.0, -i / 12.0));
  }
  double sum = 0.0;
  for (const double x : p) sum += x;
  for (double& x : p) x /= sum;
  return p;
}

// Tokens of the table in the order of how near their prior is to the wanted one.
std::vector<TokenId> nearest(const TokenTable& table, double wanted) {
  std::vector<std::size_t> order(table.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto distance = [&](std::size_t i) { return std::abs(std::log(table.probability(i) / wanted)); };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t x, std::size_t y) { return distance(x) < distance(y); });
  std::vector<TokenId> out;
  for (const std::size_t i : order) out.push_back(table.ids()[i]);
  return out;
}

// All but the lock; the last one has the strongest effect.
std::vector<Part> parts_around(const Distribution& dist, const std::vector<std::size_t>& lock) {
  std::vector<Part> parts;
  for (const std::size_t position : free_positions(dist))
    if (std::find(lock.begin(), lock.end(), position) == lock.end())
      parts.push_back({position, (1.0 - kStrongest) / static_cast<double>(kContext - 1)});
  parts.back().share = kStrongest;
  return parts;
}

// A problem under construction.
struct Site {
  Site(Tables of, std::size_t n_lock, bool in_the_middle, std::uint64_t seed)
      : tables(of),
        dist(constructed_law(of, kContext + n_lock)),
        positions(lock_positions(n_lock, in_the_middle)),
        context(dist, parts_around(dist, positions), seed) {}

  std::vector<std::size_t> lock_positions(std::size_t n_lock, bool in_the_middle) const {
    const std::size_t first = in_the_middle ? 1 + kContext / 2 : 1 + kContext;
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < n_lock; ++i) out.push_back(first + i);
    return out;
  }
  const TokenTable& table() const { return dist.table(positions[0]); }
  // Tokens of about these priors, the skip-th nearest of each.
  std::vector<TokenId> tokens(const std::vector<double>& priors, std::size_t skip = 0) const {
    std::vector<TokenId> out;
    for (const double prior : priors) out.push_back(nearest(table(), prior)[skip]);
    return out;
  }
  double prior(const std::vector<TokenId>& lock) const {
    double p = 1.0;
    for (const TokenId id : lock) p *= std::exp(table().log_probability(id));
    return p;
  }
  std::unique_ptr<const Problem> problem(const std::string& family, const std::string& variant,
                                         std::vector<Mode> modes, Stage none) {
    Lock lock = token_lock(dist, context, {positions, std::move(modes), none});
    return std::make_unique<const Problem>(family, fmt::format("{}-{}{}", family, name_of(tables), variant),
                                           dist, std::move(context), std::move(lock));
  }

  Tables tables;
  Distribution dist;
  std::vector<std::size_t> positions;
  ContextSum context;
};

// One mode has nearly all of the event. Half of its lock helps a little.
std::unique_ptr<const Problem> dominant(Tables tables, const std::string& family, bool in_the_middle,
                                        double prior, double chance) {
  Site site(tables, 2, in_the_middle, 11);
  auto tokens = site.tokens({std::sqrt(prior)}, 1);
  tokens.push_back(site.tokens({prior / site.prior(tokens)}, 1)[0]);
  const double p = site.prior(tokens) * chance;
  const double half = 0.01 * p / (2.0 * std::sqrt(site.prior(tokens)));
  return site.problem(family, fmt::format("-{:.0e}", prior), {{tokens, {{1.0, half}, {1.0, chance}}}},
                      {1.0, 0.02 * p});
}

std::unique_ptr<const Problem> fifty(Tables tables) {
  Site site(tables, 2, false, 12);
  constexpr double kPrior = 1.5e-3, kChance = 1e-3;
  std::vector<Mode> modes;
  for (std::size_t m = 0; m < 50; ++m)
    modes.push_back({site.tokens({kPrior, kPrior}, m), {{1.0, 4e-8}, {1.0, kChance}}});
  return site.problem("fifty", "", std::move(modes), {1.0, 1e-9});
}

// Where half of all inputs are above a level the mode has 1e-5 of them; of the event it has 0.9.
std::unique_ptr<const Problem> late(Tables tables) {
  Site site(tables, 2, false, 13);
  constexpr double kEvent = 1e-7, kRest = 0.1 * kEvent, kShare = 1e-5;
  const auto tokens = site.tokens({0.056, 1.5e-3}, 2);
  const double prior = site.prior(tokens), chance = (kEvent - kRest) / prior;
  const auto at = [&](double c) { return static_cast<double>(site.context.threshold(c)); };
  const double slope = (at(kRest) - at(0.5)) / (at(chance) - at(0.5 * kShare / prior));
  return site.problem("late", "", {{tokens, {{1.0, kRest}, {slope, chance}}}}, {1.0, kRest});
}

// A frequent mode comes near the event and does not reach it; a rare one does.
std::unique_ptr<const Problem> decoy(Tables tables) {
  Site site(tables, 2, false, 14);
  const auto near = site.tokens({0.056, 1.5e-3}, 2), rare = site.tokens({1.5e-3, 1.5e-3}, 7);
  const Stage half{1.0, 3e-8};
  return site.problem("decoy", "", {{near, {half, {0.05, 1e-5}}}, {rare, {half, {1.0, 0.1}}}}, {1.0, 1e-9});
}

std::unique_ptr<const Problem> third(Tables tables) {
  Site site(tables, 3, false, 15);
  const auto tokens = site.tokens(
      tables == Tables::kPeaked ? std::vector{0.056, 1.5e-3, 0.056} : std::vector{0.01, 0.01, 0.01}, 3);
  return site.problem("third", "", {{tokens, {{1.0, 1e-8}, {1.0, 1.3e-5}, {1.0, 0.3}}}}, {1.0, 1e-9});
}

// A sixth of the event needs three tokens, and two of them are of no help.
std::unique_ptr<const Problem> needle(Tables tables) {
  Site site(tables, 3, false, 16);
  const auto tokens = site.tokens(
      tables == Tables::kPeaked ? std::vector{0.056, 1.5e-3, 0.056} : std::vector{0.01, 0.01, 0.01}, 3);
  const Stage none{1.0, site.prior(tokens) * 0.3 * 5.0};
  return site.problem("needle", "", {{tokens, {none, none, {1.0, 0.3}}}}, none);
}

}  // namespace

Lock token_lock(const Distribution& dist, const ContextSum& context, const LockSpec& spec) {
  const std::size_t k = spec.positions.size(), n_modes = spec.modes.size();
  // [positions][d_vocab]: the mode whose token it is, or n_modes; [positions][modes + 1]: its prior.
  std::vector<std::vector<std::size_t>> mode_of(k, std::vector<std::size_t>(dist.d_vocab, n_modes));
  std::vector<std::vector<double>> prior(k, std::vector<double>(n_modes + 1, 0.0));
  for (std::size_t i = 0; i < k; ++i) {
    const TokenTable& table = dist.table(spec.positions[i]);
    for (std::size_t m = 0; m < n_modes; ++m)
      mode_of[i][static_cast<std::size_t>(spec.modes[m].tokens[i])] = m;
    for (std::size_t t = 0; t < table.size(); ++t)
      prior[i][mode_of[i][static_cast<std::size_t>(table.ids()[t])]] += table.probability(t);
  }
  const auto row_of_modes = [k, n_modes](const std::size_t* modes) {
    std::size_t best = n_modes, most = 0;
    for (std::size_t i = 0; i < k; ++i) {
      if (modes[i] == n_modes) continue;
      const auto agree = static_cast<std::size_t>(std::count(modes, modes + k, modes[i]));
      if (agree > most || (agree == most && modes[i] < best)) best = modes[i], most = agree;
    }
    return most == 0 ? k * n_modes : k * best + most - 1;
  };
  Lock lock;
  lock.positions = spec.positions;
  for (const Mode& mode : spec.modes) lock.modes.push_back(mode.tokens);
  const auto row = [&](const Stage& stage) { return Row{stage.slope, context.threshold(stage.chance), 0.0}; };
  for (const Mode& mode : spec.modes)
    for (const Stage& stage : mode.stages) lock.rows.push_back(row(stage));
  lock.rows.push_back(row(spec.none));
  std::vector<std::size_t> modes(k, 0);
  for (std::size_t i = 0; i < k;) {  // counts through all combinations
    double p = 1.0;
    for (std::size_t j = 0; j < k; ++j) p *= prior[j][modes[j]];
    lock.rows[row_of_modes(modes.data())].prior += p;
    for (i = 0; i < k && ++modes[i] > n_modes; ++i) modes[i] = 0;
  }
  lock.row_of = [mode_of = std::move(mode_of), positions = spec.positions,
                 row_of_modes](std::span<const TokenId> tokens) {
    std::array<std::size_t, 4> at;
    for (std::size_t i = 0; i < positions.size(); ++i)
      at[i] = mode_of[i][static_cast<std::size_t>(tokens[positions[i]])];
    return row_of_modes(at.data());
  };
  return lock;
}

Distribution constructed_law(Tables tables, std::size_t n_free) {
  Distribution dist;
  dist.name = name_of(tables);
  dist.sha256 = dist.name;
  dist.d_vocab = kVocab;
  const std::vector<double> p = probabilities(tables);
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < p.size(); ++i) ids.push_back(static_cast<TokenId>(i));
  dist.tables = {TokenTable("start", {kStart}, {1.0}, dist.name), TokenTable("token", ids, p, dist.name)};
  dist.positions.assign(1 + n_free, 1);
  dist.positions[0] = 0;
  return dist;
}

Problems constructed_problems() {
  Problems out;
  for (const Tables t : {Tables::kPeaked, Tables::kWide}) {
    for (const auto& [prior, chance] : {std::pair(1e-4, 1e-2), std::pair(1e-6, 0.3), std::pair(1e-8, 0.5)})
      out.push_back(dominant(t, "dominant", false, prior, chance));
    out.push_back(fifty(t));
    out.push_back(late(t));
    out.push_back(decoy(t));
    out.push_back(third(t));
    for (const auto& [prior, chance] : {std::pair(1e-4, 1e-2), std::pair(1e-6, 0.3)})
      out.push_back(dominant(t, "middle", true, prior, chance));
    out.push_back(needle(t));
  }
  return out;
}

}  // namespace deeptail::modes
