#include "events/pattern_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/memory.h"
#include "core/random.h"

namespace deeptail {

namespace {

constexpr double kUsualStep = 0.01;  // a guess of the chance of one more token that is needed

// [n_states][..]: where one more token leads, each state once.
std::vector<std::vector<std::uint32_t>> successors(const TokenAutomaton& automaton) {
  const std::size_t n = automaton.n_states();
  std::vector<std::vector<std::uint32_t>> out(n);
  std::vector<std::uint32_t> seen(n, std::numeric_limits<std::uint32_t>::max());
  for (std::uint32_t s = 0; s < n; ++s)
    for (const std::uint32_t to : automaton.next(s))
      if (seen[to] != s) {
        seen[to] = s;
        out[s].push_back(to);
      }
  return out;
}

// Tokens that are missing until acceptance: [n_states].
std::vector<std::size_t> distances(const TokenAutomaton& automaton,
                                   const std::vector<std::vector<std::uint32_t>>& next) {
  const std::size_t n = next.size();
  std::vector<std::size_t> distance(n, n + 1);
  distance[TokenAutomaton::accepted()] = 0;
  for (std::uint32_t s = 0; s < n; ++s)
    if (automaton.accepts_at_end(s) && s != TokenAutomaton::accepted()) distance[s] = 1;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t s = 0; s < n; ++s)
      for (const std::uint32_t to : next[s])
        if (distance[to] + 1 < distance[s]) {
          distance[s] = distance[to] + 1;
          changed = true;
        }
  }
  return distance;
}

}  // namespace

PatternTables::PatternTables(const TokenAutomaton& automaton, std::size_t max_tokens,
                             std::vector<double> chances)
    : n_states_(automaton.n_states()),
      chances_(std::move(chances)),
      returns_(n_states_, 0),
      roots_(n_states_, 0) {
  for (std::uint32_t s = 0; s < n_states_; ++s) {
    roots_[s] = automaton.is_root(s);
    from_start_ = from_start_ || (automaton.is_root(s) && automaton.accepts_at_end(s));
  }
  if (from_start_) std::fill(roots_.begin(), roots_.end(), 0);
  check_memory(fmt::format("a pattern of {} states on {} tokens", n_states_, max_tokens),
               static_cast<double>(n_states_ * (max_tokens + 1)) * (sizeof(double) + 1.0),
               "take a shorter pattern or fewer tokens");
  const auto next = successors(automaton);
  if (chances_.empty()) {
    const std::vector<std::size_t> distance = distances(automaton, next);
    for (const std::size_t d : distance)
      chances_.push_back(std::pow(kUsualStep, static_cast<double>(std::min<std::size_t>(d, 100))));
  }
  open_.assign((max_tokens + 1) * n_states_, 0);
  for (std::uint32_t s = 0; s < n_states_; ++s)
    open_[s] = s == TokenAutomaton::accepted() || automaton.accepts_at_end(s);
  for (std::size_t left = 1; left <= max_tokens; ++left)
    for (std::uint32_t s = 0; s < n_states_; ++s)
      open_[left * n_states_ + s] = std::any_of(next[s].begin(), next[s].end(), [&](std::uint32_t to) {
        return open_[(left - 1) * n_states_ + to] != 0;
      });
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t s = 0; s < n_states_; ++s) {
      if (returns_[s] != 0) continue;
      returns_[s] = std::any_of(next[s].begin(), next[s].end(),
                                [&](std::uint32_t to) { return roots_[to] != 0 || returns_[to] != 0; });
      changed = changed || returns_[s] != 0;
    }
  }
  outside_.assign((max_tokens + 1) * n_states_, 0.0);
  one_step_ = true;
  for (std::size_t left = 0; left <= max_tokens; ++left)
    for (std::uint32_t s = 0; s < n_states_; ++s)
      if (open(s, left) && roots_[s] == 0) {
        outside_[left * n_states_ + s] = s == TokenAutomaton::accepted() ? 1.0 : chances_[s];
        if (s != TokenAutomaton::accepted()) one_step_ = false;
      }
  for (std::uint32_t s = 0; s < n_states_; ++s)
    if (s != TokenAutomaton::dead() && roots_[s] == 0) best_.push_back(s);
  const auto chance = [&](std::uint32_t s) { return s == TokenAutomaton::accepted() ? 2.0 : chances_[s]; };
  std::stable_sort(best_.begin(), best_.end(), [&](auto a, auto b) { return chance(a) > chance(b); });
}

double sum_of_values(std::span<const float> weights, std::span<const std::uint32_t> next,
                     std::span<const double> values) {
  double sum = 0.0;
  for (std::size_t v = 0; v < weights.size(); ++v) sum += static_cast<double>(weights[v]) * values[next[v]];
  return sum;
}

OrderedDraw draw_in_order(std::span<const float> weights, double total, std::span<const std::uint32_t> next,
                          std::span<const double> values, std::span<const std::uint32_t> best,
                          std::uint64_t number) {
  thread_local std::vector<double> masses;  // [n_states]
  masses.assign(values.size(), 0.0);
  for (std::size_t v = 0; v < weights.size(); ++v) masses[next[v]] += static_cast<double>(weights[v]);
  OrderedDraw out;
  double left = unit_double(number) * total;  // from where the tokens of the drawn state begin
  std::uint32_t drawn = TokenAutomaton::dead();
  bool found = false;
  for (const std::uint32_t s : best) {
    if (!(values[s] > 0.0) || !(masses[s] > 0.0)) continue;
    out.best = std::max(out.best, values[s]);
    found = left < masses[s];
    drawn = s;
    if (found) break;
    left -= masses[s];
  }
  double sum = 0.0;
  for (std::size_t v = 0; v < weights.size(); ++v) {
    if (!(weights[v] > 0.0f) || (found ? next[v] != drawn : values[next[v]] > 0.0)) continue;
    out.token = static_cast<TokenId>(v);
    sum += static_cast<double>(weights[v]);
    if (sum > left) break;
  }
  return out;
}

double weight_of_values(std::span<const float> weights, std::span<const std::uint32_t> next,
                        std::span<const double> values) {
  double sum = 0.0;
  for (std::size_t v = 0; v < weights.size(); ++v)
    sum += values[next[v]] > 0.0 ? static_cast<double>(weights[v]) : 0.0;
  return sum;
}

TokenId draw_by_value(std::span<const float> weights, std::span<const std::uint32_t> next,
                      std::span<const double> values, double more, double sum, std::uint64_t number) {
  const double wanted = unit_double(number) * sum;
  double so_far = 0.0;
  TokenId last = kEndOfText;
  for (std::size_t v = 0; v < weights.size(); ++v) {
    const double value = values[next[v]];
    if (!(value > 0.0) || !(weights[v] > 0.0f)) continue;
    const double part = static_cast<double>(weights[v]) * (value + more);
    so_far += part;
    last = static_cast<TokenId>(v);
    if (so_far > wanted) break;
  }
  return last;
}

}  // namespace deeptail
