// What a sampled text pays: the chance to finish the pattern from where it is, summed over its steps.
//
// Every text that is accepted leaves the roots for the last time at one step and stays outside until it is accepted. So
//   p = sum_t E[ 1(text in a root at t) B_t ],  B_t = Pr[the next token leaves the roots, and the text is accepted
//                                                        before it comes back],
// which a branch estimates without bias: from step t on tokens are drawn in proportion to p(token) times the guessed
// chance of where it leads, and what that makes too likely is taken out by its factor. The steps at which branches leave
// are drawn in proportion to the guesses too. One time in eleven the guess is not asked: else a state that it takes for
// hopeless, and is not, would hardly ever be tried, and answers would nearly always be too small. (docs/events.md)
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.h"
#include "events/pattern_scorer.h"

namespace deeptail {

namespace {

constexpr double kUnguided = 0.1;  // over the guided ones

// Finaliser of MurmurHash3.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccdULL;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ x >> 33;
}

std::uint64_t seed_of(std::span<const std::uint64_t> numbers) {
  std::uint64_t seed = 0x9e3779b97f4a7c15ULL;
  for (const std::uint64_t number : numbers) seed = mixed(seed + number);
  return seed;
}

}  // namespace

// Steps for all branches of each row: one number, spread evenly over the sum of the guesses.
void PatternScorer::choose_tries(std::size_t first, std::size_t n) {
  const TextRows& rows = texts_.rows();
  seeds_.resize(n);
  root_sums_.resize(n);
  leads_.assign(n * trace_.steps, 0.0);
  leave_at_.assign(branches_ * n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t row = first + i;
    seeds_[i] = seed_of(std::span(rows.numbers).subspan(row * n_numbers_, n_numbers_));
    const double chance = roots_sum(row, trace_.chance), open = roots_sum(row, trace_.open);
    root_sums_[i] = chance > 0.0 ? (1.0 + kUnguided) * chance : 0.0;
    if (!(root_sums_[i] > 0.0)) continue;
    double* leads = leads_.data() + i * trace_.steps;
    for (std::size_t s = 0; s < trace_.steps; ++s)
      leads[s] = trace_.g(row, s) + kUnguided * chance * trace_.open[row * trace_.steps + s] / open;
    const double u = unit_double(uniform64({seeds_[i], Stream::kBranches}, 0, 0));
    double so_far = 0.0;
    std::size_t t = 0, last = 0;
    for (std::size_t k = 0; k < branches_; ++k) {
      const double wanted = (static_cast<double>(k) + u) / static_cast<double>(branches_) * root_sums_[i];
      for (; t < trace_.steps && !(so_far + leads[t] > wanted); ++t) {
        so_far += leads[t];
        if (leads[t] > 0.0) last = t;
      }
      leave_at_[k * n + i] = static_cast<std::uint32_t>(t < trace_.steps ? t : last);
    }
  }
}

Decoder::Choice PatternScorer::try_step(Try& one, std::size_t k, std::size_t t,
                                        const NextTokenLaw& law) const {
  const auto next = automaton_.next(one.state);
  const auto values = tables_.outside(trace_.steps - t - 1);
  const double sum = sum_of_values(law.weights(), next, values);
  if (!(sum > 0.0)) {
    one.worth = 0.0;
    return {};
  }
  const std::uint64_t number =
      uniform64({seeds_[one.row - first_], Stream::kBranches}, k + 1, static_cast<std::uint32_t>(t));
  const double more = kUnguided * sum / weight_of_values(law.weights(), next, values),
               all = (1.0 + kUnguided) * sum;
  const TokenId token = draw_by_value(law.weights(), next, values, more, all, number);
  const std::uint32_t to = next[static_cast<std::size_t>(token)];
  const double factor = all / law.total() / (values[to] + more);
  one.worth *= factor;
  one.state = to;
  if (sums_ != nullptr) one.path.emplace_back(to, factor);
  return {token, to == TokenAutomaton::accepted() || t + 1 == trace_.steps};
}

// Branch k of all rows in work that have one.
double PatternScorer::run_tries(std::size_t k) {
  const TextRows& rows = texts_.rows();
  const std::size_t n = root_sums_.size();
  tries_.clear();
  branch_texts_.clear();
  branch_tokens_.resize(n * rows.width);
  for (std::size_t i = 0; i < n; ++i) {
    if (!(root_sums_[i] > 0.0)) continue;
    const std::size_t row = first_ + i, t = leave_at_[k * n + i], length = rows.prompt[row] + t;
    TokenId* tokens = branch_tokens_.data() + i * rows.width;
    std::copy_n(rows.tokens.data() + row * rows.width, length, tokens);
    tries_.push_back({.row = row, .first = t, .state = trace_.at(row, t)});
    branch_texts_.push_back({row, tokens, length});
  }
  const double flops =
      texts_.branch(branch_texts_, [&](std::size_t b, std::size_t length, const NextTokenLaw& law) {
        Try& one = tries_[b];
        return try_step(one, k, length - rows.prompt[one.row], law);
      });
  settle_tries(k, branch_texts_);
  return flops;
}

void PatternScorer::settle_tries(std::size_t, std::span<const SampledTexts::Branch> branches) {
  const TextRows& rows = texts_.rows();
  for (std::size_t b = 0; b < tries_.size(); ++b) {
    const Try& one = tries_[b];
    const std::size_t i = one.row - first_;
    if (sums_ != nullptr) record_path(one);
    const double paid = one.worth / leads_[i * trace_.steps + one.first];
    paid_sums_[i] += paid;
    paid_squares_[i] += paid * paid;
    if (!(paid > best_[i])) continue;
    best_[i] = paid;
    const std::size_t prompt = rows.prompt[one.row], length = branches[b].length - prompt;
    const auto to = paid_.row(one.row);
    std::fill(std::copy_n(branches[b].tokens + prompt, length, to.begin()), to.end(), 0);
    paid_.lengths[one.row] = static_cast<std::uint32_t>(length);
  }
}

// What each state that a branch went through was worth in the end: the factors of all later steps.
void PatternScorer::record_path(const Try& one) {
  double worth = one.worth > 0.0 ? 1.0 : 0.0;
  for (std::size_t k = one.path.size(); k-- > 0;) {
    const auto& [state, factor] = one.path[k];
    if (state != TokenAutomaton::accepted()) {
      sums_->worth[state] += worth;
      sums_->visits[state] += 1.0;
    }
    worth *= factor;
  }
}

void PatternScorer::pay_for_likely(std::size_t row) {
  const Likely& likely = likely_[row];
  if (!(likely.p > 0.0)) return;
  const auto before = texts_.rows().answer(row).first(likely.step);
  const auto to = paid_.row(row);
  std::copy(before.begin(), before.end(), to.begin());
  to[likely.step] = likely.token;
  paid_.lengths[row] = static_cast<std::uint32_t>(likely.step + 1);
}

double PatternScorer::pay(std::size_t first, std::size_t n) {
  first_ = first;
  double flops = 0.0;
  paid_sums_.assign(n, 0.0);
  paid_squares_.assign(n, 0.0);
  best_.assign(n, 0.0);
  const bool by_branches = !tables_.one_step();
  if (by_branches) {
    choose_tries(first, n);
    // Later ones leave later, so none of them needs keys that another has overwritten.
    for (std::size_t k = branches_; k-- > 0;) flops += run_tries(k);
  }
  const auto tries = static_cast<double>(branches_);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t row = first + i;
    double paid = roots_sum(row, trace_.deployed);
    if (by_branches) {
      const double mean = paid_sums_[i] / tries;
      paid = root_sums_[i] * mean;
      if (branches_ > 1)
        branch_variances_[row] = root_sums_[i] * root_sums_[i] *
                                 std::max(0.0, paid_squares_[i] / tries - mean * mean) / (tries - 1.0);
    }
    if (!by_branches) pay_for_likely(row);
    if (ends_in_root(row)) paid += 1.0;
    log_payoffs_[row] = paid > 0.0 ? std::log(paid) : -std::numeric_limits<double>::infinity();
  }
  return flops;
}

}  // namespace deeptail
