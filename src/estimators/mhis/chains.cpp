#include "estimators/mhis/chains.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"

namespace deeptail {

namespace {
constexpr std::uint64_t kStartPart = 1;

// The place where the running sum of chances passes u.
std::size_t place_at(std::span<const float> chances, double u) {
  double sum = 0.0;
  std::size_t last = 0;  // rounding may leave u beyond the sum: then the last one with any chance
  for (std::size_t i = 0; i < chances.size(); ++i) {
    if (chances[i] > 0.0f) last = i;
    sum += static_cast<double>(chances[i]);
    if (sum > u) return i;
  }
  return last;
}
}  // namespace

ChainGroup::ChainGroup(const ChainProblem& problem, const MhisConfig& config, std::size_t first,
                       std::size_t count)
    : problem_(problem),
      config_(config),
      first_(first),
      count_(count),
      length_(problem.dist.length()),
      n_free_(problem.gradients_of.positions().size()),
      d_model_(problem.model.config().d_model),
      logit_stride_(round_up(problem.gradients_of.largest_table(), kPanel)),
      pass_(problem.engine, problem.target, {count, length_, problem.gradients_of.positions()},
            problem.table),
      scratch_(problem.test.make_scratch()),
      n_triggers_(count),
      events_(count, Event::kUnknown),
      picked_(count),
      log_forward_(count),
      prior_ratio_(count),
      old_place_(count),
      rows_(count * d_model_),
      scores_(count * logit_stride_),
      logits_(count * logit_stride_),
      said_(count) {
  open_.reserve(count);
  for (States* s : {&now_, &proposed_}) {
    s->tokens.resize(count * length_);
    s->values.resize(count);
    s->resid.resize(count * d_model_);
    s->gradients.resize(count * n_free_ * d_model_);
  }
  for (std::size_t i = 0; i < count; ++i)
    sample(problem.dist, derived_seed(config.seed, kStartPart), first + i,
           std::span(now_.tokens).subspan(i * length_, length_));
  pass_.run({now_.tokens, length_}, now_.values.data(), {now_.resid.data(), d_model_}, now_.gradients.data());
}

std::span<const TokenId> ChainGroup::tokens(std::size_t i) const {
  return std::span(now_.tokens).subspan(i * length_, length_);
}

void ChainGroup::pick_positions(std::uint64_t step) {
  for (std::size_t i = 0; i < count_; ++i) {
    const double u =
        unit_double(uniform64({config_.seed, Stream::kChains}, step_index(0, step, first_ + i), 0));
    picked_[i] = std::min(static_cast<std::size_t>(u * static_cast<double>(n_free_)), n_free_ - 1);
  }
}

void ChainGroup::find_logits(const AlignedVector<float>& gradients) {
  const auto inverse = static_cast<float>(1.0 / config_.temperature);
  for (std::size_t t = 0; t < problem_.dist.tables.size(); ++t) {
    open_.clear();
    for (std::size_t i = 0; i < count_; ++i)
      if (problem_.gradients_of.table_of(picked_[i]) == t) open_.push_back(i);
    if (open_.empty()) continue;
    for (std::size_t k = 0; k < open_.size(); ++k)
      std::copy_n(gradients.data() + (open_[k] * n_free_ + picked_[open_[k]]) * d_model_, d_model_,
                  rows_.data() + k * d_model_);
    problem_.gradients_of.scores(t, open_.size(), {rows_.data(), d_model_}, {scores_.data(), logit_stride_});
    const std::vector<float>& prior = problem_.gradients_of.log_prior(t);
    for (std::size_t k = 0; k < open_.size(); ++k) {
      const float* score = scores_.data() + k * logit_stride_;
      float* out = logits(open_[k]);
      for (std::size_t j = 0; j < prior.size(); ++j) out[j] = prior[j] + score[j] * inverse;
    }
  }
}

std::size_t ChainGroup::table_size(std::size_t i) const {
  return problem_.dist.tables[problem_.gradients_of.table_of(picked_[i])].size();
}

// The softmax takes out the top, so its largest entry is 1 / sum: a chance too small for a float is still
// known as a log.
double ChainGroup::log_chance(std::size_t i, std::size_t place) {
  const Best top = best_of(table_size(i), logits(i));
  const float logit = logits(i)[place];
  softmax(table_size(i), 1.0f, logits(i));
  return static_cast<double>(logit - top.value) + std::log(static_cast<double>(logits(i)[top.index]));
}

void ChainGroup::propose(std::uint64_t step) {
  find_logits(now_.gradients);
  proposed_.tokens = now_.tokens;
  for (std::size_t i = 0; i < count_; ++i) {
    const std::size_t position = problem_.gradients_of.positions()[picked_[i]];
    const TokenTable& table = problem_.dist.table(position);
    const std::vector<float>& prior = problem_.gradients_of.log_prior(problem_.dist.positions[position]);
    softmax(table.size(), 1.0f, logits(i));
    const double u =
        unit_double(uniform64({config_.seed, Stream::kChains}, step_index(0, step, first_ + i), 1));
    const std::size_t place = place_at({logits(i), table.size()}, u);
    log_forward_[i] = std::log(static_cast<double>(logits(i)[place]));
    old_place_[i] = place_of(table, now_.tokens[i * length_ + position]);
    prior_ratio_[i] = prior[place] - prior[old_place_[i]];
    proposed_.tokens[i * length_ + position] = table.ids()[place];
  }
}

// log of pi(proposed) q(now | proposed) / (pi(now) q(proposed | now)).
void ChainGroup::decide(std::uint64_t step) {
  pass_.run({proposed_.tokens, length_}, proposed_.values.data(), {proposed_.resid.data(), d_model_},
            proposed_.gradients.data());
  find_logits(proposed_.gradients);
  for (std::size_t i = 0; i < count_; ++i) {
    const double climb = (static_cast<double>(proposed_.values[i]) - static_cast<double>(now_.values[i])) /
                         config_.temperature;
    const double log_ratio =
        climb + static_cast<double>(prior_ratio_[i]) + log_chance(i, old_place_[i]) - log_forward_[i];
    const double u =
        unit_double(uniform64({config_.seed, Stream::kChains}, step_index(0, step, first_ + i), 2));
    if (std::log(u) < log_ratio) take(i);
  }
}

void ChainGroup::take(std::size_t i) {
  ++accepted_;
  const std::size_t position = problem_.gradients_of.positions()[picked_[i]];
  TokenId& token = now_.tokens[i * length_ + position];
  const TokenId proposed = proposed_.tokens[i * length_ + position];
  if (token == proposed) return;  // accepted, and nothing changed
  token = proposed;
  now_.values[i] = proposed_.values[i];
  std::copy_n(proposed_.resid.data() + i * d_model_, d_model_, now_.resid.data() + i * d_model_);
  const std::size_t width = n_free_ * d_model_;
  std::copy_n(proposed_.gradients.data() + i * width, width, now_.gradients.data() + i * width);
  events_[i] = Event::kUnknown;
}

void ChainGroup::find_events() {
  open_.clear();
  for (std::size_t i = 0; i < count_; ++i) {
    if (events_[i] != Event::kUnknown) continue;
    std::copy_n(now_.resid.data() + i * d_model_, d_model_, rows_.data() + open_.size() * d_model_);
    open_.push_back(i);
  }
  if (open_.empty()) return;
  problem_.test.event(open_.size(), {rows_.data(), d_model_}, std::span(said_).first(open_.size()),
                      *scratch_);
  for (std::size_t k = 0; k < open_.size(); ++k) events_[open_[k]] = said_[k] ? Event::kYes : Event::kNo;
}

void ChainGroup::record_step(std::uint64_t step, ChainRecord& record) {
  find_events();
  for (std::size_t i = 0; i < count_; ++i) {
    const std::size_t at = (first_ + i) * record.steps + static_cast<std::size_t>(step - config_.burn_in);
    record.values[at] = now_.values[i];
    record.events[at] = events_[i] == Event::kYes;
    if (events_[i] != Event::kYes || n_triggers_[i] >= config_.max_triggers) continue;
    const auto input = tokens(i);
    if (n_triggers_[i] > 0 && std::equal(input.begin(), input.end(), triggers_.back().tokens.begin()))
      continue;
    ++n_triggers_[i];
    triggers_.push_back({.sample = (step - config_.burn_in) * config_.chains + first_ + i,
                         .tokens = {input.begin(), input.end()}});
  }
}

void ChainGroup::run(std::uint64_t begin, std::uint64_t end, ChainRecord& record) {
  for (std::uint64_t step = begin; step < end; ++step) {
    pick_positions(step);
    propose(step);
    decide(step);
    if (step >= config_.burn_in) record_step(step, record);
  }
}

}  // namespace deeptail
