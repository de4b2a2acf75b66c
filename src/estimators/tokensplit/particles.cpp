#include "estimators/tokensplit/particles.h"

#include <algorithm>

namespace deeptail {

void TokenProblem::log_payoffs(TokenBatch inputs, std::span<const std::uint32_t> who,
                               std::span<double> out) const {
  for (std::size_t i = 0; i < who.size(); ++i)
    out[i] = mixture == nullptr ? 0.0 : mixture->log_weight(inputs.sequence(who[i]));
}

std::vector<std::size_t> TokenProblem::free_parts() const {
  std::vector<std::size_t> free = law.free_parts();
  for (std::size_t part = law.facts().n_parts; part < n_parts(); ++part) free.push_back(part);
  return free;
}

InputParticles::InputParticles(const TokenProblem& problem, std::size_t max_particles, MovePolicy& policy,
                               ThreadPool& pool)
    : problem_(problem),
      policy_(policy),
      pool_(pool),
      law_parts_(problem.law.facts().n_parts),
      event_parts_(problem.event.n_parts()),
      free_(problem.free_parts()),
      scorer_(problem.event.scorer(
          problem.model, problem.law,
          {.max_held = max_particles, .table = problem.table, .screen = problem.screen}, pool)),
      answer_length_(problem.event.answer_length()) {}

void InputParticles::sample(std::size_t n, std::uint64_t seed) {
  is_held_ = false;
  numbers_.law.resize(n * law_parts_);
  numbers_.event = sample_numbers(problem_.event, problem_.law, seed, 0, n);
  sample_parts(problem_.law, seed, 0, pool_, numbers_.law);
  problem_.law.make(numbers_.law, inputs_, pool_);
  if (answer_length_ > 0) answers_.resize(n, answer_length_);
  if (problem_.event.pays()) {
    paid_.resize(n, answer_length_);
    log_payoffs_.resize(n);
  }
}

void InputParticles::log_payoffs(std::span<const std::uint32_t> who, std::span<double> out) const {
  problem_.log_payoffs(inputs(), who, out);
  if (!problem_.event.pays()) return;
  for (std::size_t i = 0; i < who.size(); ++i) out[i] += log_payoffs_[who[i]];
}

TokenBatch InputParticles::texts() const {
  if (answer_length_ == 0) return inputs();
  const std::size_t n = size(), width = inputs_.max_length + answer_length_;
  texts_.resize(n * width);
  for (std::size_t i = 0; i < n; ++i) {
    TokenId* row = texts_.data() + i * width;
    row = std::copy_n(inputs_.tokens.data() + i * inputs_.max_length, inputs_.max_length, row);
    std::copy_n(answers_.tokens.data() + i * answer_length_, answer_length_, row);
  }
  return {texts_, width};
}

// Inputs whose scores take about a second.
std::size_t InputParticles::a_second() const {
  constexpr double kFlops = 1e11;
  constexpr std::size_t kFewest = 16, kMost = 8192;
  const double n = kFlops / problem_.score_flops();
  return std::clamp(static_cast<std::size_t>(n), kFewest, kMost);
}

// In pieces, between which the policy is asked whether to go on.
void InputParticles::scores(std::span<double> out) {
  const std::size_t piece = a_second();
  const EventInputs all = scored();
  for (std::size_t first = 0; first < size(); first += piece) {
    if (first > 0 && !policy_.goes_on(work_)) return;
    const std::size_t n = std::min(piece, size() - first);
    work_ += is_held_ ? scorer_->held_scores(first, out.subspan(first, n))
                      : scorer_->scores({all.inputs.part(first, n),
                                         all.numbers.subspan(first * event_parts_, n * event_parts_)},
                                        out.subspan(first, n));
    if (scorer_->gave_up() && !policy_.goes_on(work_)) return;
    keep_answers(first, n);
  }
}

namespace {

// rows: [n, width]; row i becomes what row parents[i] was.
template <class T>
void resample_rows(std::vector<T>& rows, std::size_t width, std::span<const std::uint32_t> parents) {
  std::vector<T> next(parents.size() * width);
  for (std::size_t i = 0; i < parents.size(); ++i)
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(parents[i] * width), width,
                next.begin() + static_cast<std::ptrdiff_t>(i * width));
  rows = std::move(next);
}

template <class T>
void copy_row(const std::vector<T>& from, std::size_t i, std::vector<T>& to, std::size_t j,
              std::size_t width) {
  std::copy_n(from.data() + i * width, width, to.data() + j * width);
}

}  // namespace

// What the scorer says of inputs [first, first + n), which it scored last.
void InputParticles::keep_answers(std::size_t first, std::size_t n) {
  if (answer_length_ == 0) return;
  const auto keep = [&](TokenBatch from, Inputs& to) {
    std::copy_n(from.tokens.data(), n * answer_length_, to.row(first).data());
    std::copy_n(from.lengths.data(), n, to.lengths.data() + first);
  };
  keep(scorer_->answers(), answers_);
  if (!problem_.event.pays()) return;
  keep(scorer_->paid_answers(), paid_);
  std::copy_n(scorer_->log_payoffs().data(), n, log_payoffs_.data() + first);
}

void InputParticles::resample(std::span<const std::uint32_t> parents) {
  resample_rows(numbers_.law, law_parts_, parents);
  resample_rows(numbers_.event, event_parts_, parents);
  resample_rows(inputs_.tokens, inputs_.max_length, parents);
  resample_rows(inputs_.lengths, 1, parents);
  is_held_ = is_held_ && std::is_sorted(parents.begin(), parents.end());
  if (is_held_) scorer_->copy_held(parents);
  if (answer_length_ == 0) return;
  resample_rows(answers_.tokens, answer_length_, parents);
  resample_rows(answers_.lengths, 1, parents);
  // What they pay is said anew with their next scores.
  paid_.resize(problem_.event.pays() ? parents.size() : 0, answer_length_);
  log_payoffs_.resize(paid_.size());
}

void InputParticles::hold(const ScoreHints& hints) {
  if (is_held_)
    scorer_->take_hints(hints);
  else
    work_ += scorer_->hold(scored(), hints);
  is_held_ = problem_.event.keeps_held();
}

std::size_t InputParticles::moves_at_once() const {
  constexpr std::size_t kFewest = 8;
  return std::max(kFewest, a_second() / size());
}

// Numbers that give the same input and answer are taken as they are: the score stays.
void InputParticles::take_numbers(std::size_t i) {
  copy_row(proposed_.law, i, numbers_.law, i, law_parts_);
  copy_row(proposed_.event, i, numbers_.event, i, event_parts_);
}

// Particle i's proposal closes ranks with those before it.
void InputParticles::keep_changed(std::size_t i) {
  const std::size_t to = held_.size();
  if (to != i) {
    copy_row(changed_.tokens, i, changed_.tokens, to, changed_.max_length);
    changed_.lengths[to] = changed_.lengths[i];
  }
  copy_row(proposed_.event, i, changed_numbers_, to, event_parts_);
  first_changed_[to] = std::min(first_changed_[i], changed_.lengths[to]);
  held_.push_back(static_cast<std::uint32_t>(i));
}

void InputParticles::redraw(std::size_t i, std::size_t part, std::uint64_t number) {
  if (part < law_parts_) {
    redraws_.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(part), number});
  } else {
    proposed_.event[i * event_parts_ + part - law_parts_] = number;
    moves_[i].answer = true;
  }
}

void InputParticles::propose_one(std::size_t i, const MoveRound& round, std::size_t step) {
  Move& move = moves_[i] = {.part = law_parts_ + event_parts_};
  const MoveIndex at{round.seed, step_index(round.level_number, step, i)};
  constexpr std::uint32_t kWhichKind = 0x7fffffff;  // no move draws so many numbers
  const double share = round.settings.crossing_share;
  if (share > 0.0 && unit_double(uniform64({at.seed, Stream::kMoves}, at.index, kWhichKind)) < share) {
    const Crossing crossing = scorer_->crossing(i, round.level);
    move.crossing = true;
    if (crossing.share > 0.0)
      redraw_from(crossing, event_parts_, at,
                  [&](std::size_t t, std::uint64_t number) { redraw(i, law_parts_ + t, number); });
    return;
  }
  move.kind = redraw_parts(free_, round.settings, at, [&](std::size_t part, std::uint64_t number) {
    move.part = std::min(move.part, part);
    redraw(i, part, number);
  });
}

void InputParticles::propose(const MoveRound& round, std::size_t step) {
  const std::size_t n = size();
  proposed_ = numbers_;
  changed_ = inputs_;
  moves_.resize(n);
  first_changed_.resize(n);
  changed_numbers_.resize(n * event_parts_);
  redraws_.clear();
  for (std::size_t i = 0; i < n; ++i) propose_one(i, round, step);
  problem_.law.redraw(redraws_, proposed_.law, changed_, first_changed_, pool_);
  held_.clear();
  for (std::size_t i = 0; i < n; ++i) {
    if (first_changed_[i] == kUnchanged && !moves_[i].answer)
      take_numbers(i);
    else
      keep_changed(i);
  }
}

// Accepted proposals replace what they are copies of.
void InputParticles::settle(MoveTally& tally, MoveStats& stats) {
  for (std::size_t j = 0; j < held_.size(); ++j) {
    const std::size_t i = held_[j];
    Tally& of_kind = moves_[i].crossing ? tally.crossing : tally.of(moves_[i].kind, moves_[i].part);
    of_kind.proposed += 1.0;
    ++stats.proposed;
    if (accept_[j] == 0) continue;
    of_kind.accepted += 1.0;
    ++stats.accepted;
    take_numbers(i);
    copy_row(changed_.tokens, j, inputs_.tokens, i, inputs_.max_length);
    inputs_.lengths[i] = changed_.lengths[j];
    if (answer_length_ == 0) continue;
    const TokenBatch answers = scorer_->answers();
    std::copy_n(answers.row(j), answer_length_, answers_.row(i).data());
    answers_.lengths[i] = answers.lengths[j];
  }
}

// Allocates nothing per move once its scratch has grown.
MoveTally InputParticles::run_moves(const MoveRound& round, MoveStats& stats) {
  MoveTally tally{.single = std::vector<Tally>(law_parts_ + event_parts_)};
  accept_.resize(size());
  for (std::size_t step = round.first; step < round.first + round.count; ++step) {
    propose(round, step);
    const std::size_t n = held_.size();
    const EventInputs changed{changed_.batch().part(0, n),
                              std::span(changed_numbers_).first(n * event_parts_)};
    work_ += scorer_->decide(round.level, {changed, held_, std::span(first_changed_).first(n)},
                             std::span(accept_).first(n));
    settle(tally, stats);
  }
  stats.moves += round.count;
  return tally;
}

}  // namespace deeptail
