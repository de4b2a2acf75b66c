#include "events/pattern_scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.h"

namespace deeptail {

namespace {

constexpr double kFarthest = -1e4;  // the score of texts that no pattern was ever begun in
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

}  // namespace

void PatternTrace::resize(std::size_t n, std::size_t n_steps) {
  steps = n_steps;
  state.resize(n * (n_steps + 1));
  chance.resize(n * n_steps);
  deployed.resize(n * n_steps);
  open.resize(n * n_steps);
}

void PatternTrace::copy_row(const PatternTrace& from, std::size_t i, std::size_t j) {
  std::copy_n(from.state.data() + i * (steps + 1), steps + 1, state.data() + j * (steps + 1));
  std::copy_n(from.chance.data() + i * steps, steps, chance.data() + j * steps);
  std::copy_n(from.deployed.data() + i * steps, steps, deployed.data() + j * steps);
  std::copy_n(from.open.data() + i * steps, steps, open.data() + j * steps);
}

PatternScorer::PatternScorer(const ContinuationEvent& event, std::size_t branches, const Transformer& model,
                             const InputLaw& law, const ScorerOptions& options, ThreadPool& pool)
    : automaton_(event.pattern().automaton),
      tables_(event.tables()),
      sampling_(event.sampling()),
      pattern_(event.pattern()),
      branches_(branches),
      n_numbers_(event.n_parts()),
      in_order_(branches == 0 && options.max_held > 0 && !sampling_.greedy),
      texts_(model, law, sampling_, options.max_held, pool) {
  held_trace_.resize(options.max_held, sampling_.max_tokens);
  held_scores_.resize(options.max_held);
}

// Rows take over what their held texts did until they change.
void PatternScorer::begin_rows() {
  const TextRows& rows = texts_.rows();
  trace_.resize(rows.size(), sampling_.max_tokens);
  likely_.assign(rows.size(), {});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t first = texts_.first_step(i), n = trace_.steps;
    if (first > 0 || texts_.is_same(i)) trace_.copy_row(held_trace_, texts_.held_of(i), i);
    if (texts_.is_same(i)) continue;
    if (first == 0)
      trace_.at(i, 0) = automaton_.start(pattern_.texts && pattern_.texts->nothing_in(rows.input(i)));
    std::fill_n(trace_.chance.begin() + static_cast<std::ptrdiff_t>(i * n + first), n - first, 0.0);
    std::fill_n(trace_.deployed.begin() + static_cast<std::ptrdiff_t>(i * n + first), n - first, 0.0);
    std::fill_n(trace_.open.begin() + static_cast<std::ptrdiff_t>(i * n + first), n - first, 0.0);
  }
}

Decoder::Choice PatternScorer::step(std::size_t row, std::size_t t, const NextTokenLaw& law) {
  const std::uint32_t state = trace_.at(row, t);
  const auto next = automaton_.next(state);
  const bool pays = branches_ > 0;
  OrderedDraw ordered;
  if (!pays || tables_.is_root(state, t)) {
    const auto values = tables_.outside(trace_.steps - t - 1);
    const std::size_t at = row * trace_.steps + t;
    trace_.chance[at] = sum_of_values(law.weights_before(), next, values) / law.total_before();
    trace_.deployed[at] =
        sampling_.cuts() ? sum_of_values(law.weights(), next, values) / law.total() : trace_.chance[at];
    if (pays && !tables_.one_step())
      trace_.open[at] = weight_of_values(law.weights_before(), next, values) / law.total_before();
    if (in_order_) {
      const std::uint64_t number = texts_.rows().numbers[row * n_numbers_ + t];
      ordered = draw_in_order(law.weights(), law.total(), next, values, tables_.best(), number);
      const double before = trace_.deployed[at] = std::max(trace_.chance[at], trace_.deployed[at]);
      const double near = std::min(ordered.best, before / std::max(unit_double(number), 0x1p-60));
      trace_.chance[at] = std::max(trace_.chance[at], near);
    }
    if (pays && tables_.one_step() && trace_.deployed[at] > likely_[row].p) keep_likely(row, t, law);
  }
  if (pays && !tables_.returns(state)) return {};  // nothing more will be paid
  Decoder::Choice choice = in_order_ ? Decoder::Choice{ordered.token, t + 1 == sampling_.max_tokens ||
                                                                          sampling_.stops(ordered.token)}
                                     : texts_.next(row, t, law);
  const std::uint32_t to = next[static_cast<std::size_t>(choice.token)];
  trace_.at(row, t + 1) = to;
  choice.last = choice.last || to == TokenAutomaton::accepted() || to == TokenAutomaton::dead();
  return choice;
}

void PatternScorer::keep_likely(std::size_t row, std::size_t t, const NextTokenLaw& law) {
  const auto next = automaton_.next(trace_.at(row, t));
  const auto weights = law.weights();
  float most = 0.0f;
  for (std::size_t v = 0; v < next.size(); ++v)
    if (next[v] == TokenAutomaton::accepted() && weights[v] > most) {
      most = weights[v];
      likely_[row] = {trace_.deployed[row * trace_.steps + t], t, static_cast<TokenId>(v)};
    }
}

double PatternScorer::decode(const SampledTexts::Done& done) {
  begin_rows();
  const double flops = texts_.decode(
      [this](std::size_t row, std::size_t t, const NextTokenLaw& law) { return step(row, t, law); }, done);
  take_answers();
  return flops;
}

void PatternScorer::take_answers() {
  const TextRows& rows = texts_.rows();
  answers_.resize(rows.size(), sampling_.max_tokens);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto answer = rows.answer(i);
    const auto to = answers_.row(i);
    std::fill(std::copy(answer.begin(), answer.end(), to.begin()), to.end(), 0);
    answers_.lengths[i] = static_cast<std::uint32_t>(answer.size());
  }
}

bool PatternScorer::accepted(std::size_t row) const {
  const std::size_t steps = texts_.rows().steps(row);
  const std::uint32_t last = trace_.at(row, steps);
  return trace_.at(row, 0) == TokenAutomaton::accepted() || last == TokenAutomaton::accepted() ||
         (steps == trace_.steps && automaton_.accepts_at_end(last));
}

bool PatternScorer::ends_in_root(std::size_t row) const {
  const std::size_t steps = texts_.rows().steps(row);
  const std::uint32_t last = trace_.at(row, steps);
  return trace_.at(row, 0) == TokenAutomaton::accepted() ||
         (steps == trace_.steps && tables_.is_root(last, steps) && automaton_.accepts_at_end(last));
}

double PatternScorer::score_near(std::size_t row) const {
  if (accepted(row)) return 0.0;
  double most = 0.0;
  for (std::size_t t = 0; t < trace_.steps; ++t) most = std::max(most, trace_.g(row, t));
  const double score = most > 0.0 ? std::max(kFarthest, std::log(most)) : kFarthest;
  return std::min(score, -std::numeric_limits<double>::denorm_min());
}

// Numbers up to chance / level keep the step at the level: those before it stay below.
Crossing PatternScorer::crossing(std::size_t held, double level) const {
  for (std::size_t t = 0; t < held_trace_.steps; ++t)
    if (std::log(held_trace_.g(held, t)) >= level)
      return {t, std::min(1.0, held_trace_.deployed[held * held_trace_.steps + t] / std::exp(level))};
  return {};
}

double PatternScorer::roots_sum(std::size_t row, const std::vector<double>& of) const {
  double sum = 0.0;
  for (std::size_t t = 0; t < trace_.steps; ++t) sum += of[row * trace_.steps + t];
  return sum;
}

// While texts pay, chances away from the roots are not looked at: they are 0.
double PatternScorer::score(std::size_t row) const {
  if (branches_ == 0) return score_near(row);
  const double may_pay = roots_sum(row, trace_.chance) + (ends_in_root(row) ? 1.0 : 0.0);
  return may_pay > 0.0 ? std::max(kFarthest, std::log(may_pay)) : kFarthest;
}

// After moves the inputs are those that are held, and nothing has to be decoded.
bool PatternScorer::take_held(const EventInputs& inputs, std::span<double> out) {
  const TextRows& held = texts_.held();
  const std::size_t n = out.size();
  if (branches_ > 0 || n == 0 || n != n_held_ ||
      !std::equal(inputs.numbers.begin(), inputs.numbers.end(), held.numbers.begin()))
    return false;
  for (std::size_t i = 0; i < n; ++i)
    if (!std::ranges::equal(inputs.inputs.sequence(i), held.input(i))) return false;
  std::copy_n(held_scores_.begin(), n, out.begin());
  answers_.resize(n, sampling_.max_tokens);
  for (std::size_t i = 0; i < n; ++i) {
    const auto answer = held.answer(i);
    const auto to = answers_.row(i);
    std::fill(std::copy(answer.begin(), answer.end(), to.begin()), to.end(), 0);
    answers_.lengths[i] = static_cast<std::uint32_t>(answer.size());
  }
  return true;
}

Work PatternScorer::scores(const EventInputs& inputs, std::span<double> out) {
  if (take_held(inputs, out)) return {};
  texts_.set(inputs);
  Work work{.forwards = out.size()};
  log_payoffs_.assign(branches_ > 0 ? out.size() : 0, kMinusInfinity);
  branch_variances_.assign(log_payoffs_.size(), 0.0);
  if (branches_ > 0) {
    paid_.resize(out.size(), sampling_.max_tokens);
    std::fill(paid_.lengths.begin(), paid_.lengths.end(), 0);
  }
  branch_flops_ = 0.0;
  work.flops = decode([&](std::size_t first, std::size_t n) {
    for (std::size_t i = first; i < first + n; ++i) out[i] = score(i);
    if (branches_ > 0) branch_flops_ += pay(first, n);
  });
  work.flops += branch_flops_;
  return work;
}

Work PatternScorer::hold(const EventInputs& inputs, const ScoreHints&) {
  texts_.set(inputs);
  n_held_ = inputs.inputs.size();
  Work work{.forwards = inputs.inputs.size()};
  work.flops = decode([&](std::size_t first, std::size_t n) {
    for (std::size_t i = first; i < first + n; ++i) {
      texts_.keep(i);
      held_trace_.copy_row(trace_, i, i);
      held_scores_[i] = score(i);
    }
  });
  return work;
}

Work PatternScorer::rescore(const Proposals& proposals, std::span<double> out) {
  texts_.set_changed(proposals);
  Work work{.rescored = out.size()};
  work.flops = decode([&](std::size_t first, std::size_t n) {
    for (std::size_t i = first; i < first + n; ++i)
      out[i] = texts_.is_same(i) ? held_scores_[texts_.held_of(i)] : score(i);
  });
  return work;
}

Work PatternScorer::decide(double level, const Proposals& proposals, std::span<std::uint8_t> accept) {
  texts_.set_changed(proposals);
  Work work{.rescored = accept.size()};
  work.flops = decode([&](std::size_t first, std::size_t n) {
    for (std::size_t i = first; i < first + n; ++i) {
      const std::size_t h = texts_.held_of(i);
      const double found = texts_.is_same(i) ? held_scores_[h] : score(i);
      accept[i] = found >= level;
      if (accept[i] == 0) continue;
      if (!texts_.is_same(i)) held_trace_.copy_row(trace_, i, h);
      held_scores_[h] = found;
      texts_.keep(i);
    }
  });
  return work;
}

}  // namespace deeptail
