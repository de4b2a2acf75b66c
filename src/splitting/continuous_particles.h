// A population of points with a product prior, moved by the kernels of kernels.h: what run_splitting takes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>

#include "compute/normals.h"
#include "core/random.h"
#include "deeptail/kernels.h"
#include "deeptail/splitting.h"
#include "deeptail/watch.h"
#include "splitting/start.h"

namespace deeptail {

// A score of points u: [n, dim] and, where the prior has groups, their groups: [n] (else empty).
template <class S>
concept ContinuousScore = requires(S& s, const S& c, typename S::Scratch& scratch, std::size_t n, ConstRows u,
                                   double level, std::span<const std::uint32_t> groups,
                                   std::span<double> values, std::span<std::uint8_t> passed) {
  { c.make_scratch() } -> std::same_as<std::unique_ptr<typename S::Scratch>>;  // one per thread
  s.evaluate(n, u, groups, values);
  c.at_least(level, n, u, groups, passed, scratch);  // passed[i] = value(i) >= level; on the calling thread
};

template <ContinuousScore S>
class ContinuousParticles {
 public:
  // All references must outlive it. cumulative: of the groups' probabilities, empty without groups.
  ContinuousParticles(const ProductPrior& prior, S& score, const KernelConfig& kernel, ThreadPool& pool,
                      std::span<const double> cumulative = {}, const StartCloud& start = {})
      : prior_(prior), score_(score), kernel_(kernel), pool_(pool), cumulative_(cumulative), start_(start) {
    kernel.validate();
    scratch_.resize(pool.size());
  }

  void sample(std::size_t n, std::uint64_t seed);
  std::size_t size() const { return n_; }
  void scores(std::span<double> out) {
    score_.evaluate(n_, rows(), groups_, out);
    score_evals_ += n_;
  }
  void resample(std::span<const std::uint32_t> parents);
  MoveStats move(double level, std::size_t k, std::uint64_t seed);

  // Asked now and then while particles move, and told the moves of the level; false leaves out the rest of
  // them, and stopped() says so.
  void watch(Watch watch) { watch_ = std::move(watch); }
  bool stopped() const { return stopped_; }

  ConstRows rows() const { return {u_.data(), prior_.dim()}; }
  std::span<const std::uint32_t> groups() const { return groups_; }
  std::uint64_t score_evals() const { return score_evals_; }

 private:
  static constexpr std::size_t kRows = 64;   // particles of one block of work
  static constexpr std::size_t kAsked = 16;  // times per level, at least, that watch_ is asked

  struct Scratch {
    Scratch(const S& made_for, std::size_t dim)
        : noise(kRows * dim),
          proposed(kRows * dim),
          gradient(kRows * dim),
          candidates(kRows * dim),
          mixing(dim),
          score(made_for.make_scratch()) {}
    AlignedVector<float> noise, proposed, gradient, candidates;  // [kRows, dim]
    std::vector<float> mixing;                                   // [dim]
    std::array<double, kRows> log_density{}, log_ratio{};
    std::array<std::uint64_t, kRows> index{};
    std::array<std::uint32_t, kRows> which{}, group{};  // of the candidates: row and group
    std::array<std::uint8_t, kRows> passed{};
    std::unique_ptr<typename S::Scratch> score;
  };
  struct Counts {
    std::uint64_t proposed = 0, accepted = 0, scored = 0;
  };
  struct Where {
    double level;
    std::size_t k, step;
    std::uint64_t seed;
    double h;
  };

  void fill_caches();
  void fill_cache(std::size_t first, std::size_t n = 1);
  Counts run_steps(Where where, std::size_t end);
  void move_points(const Where& where, std::size_t first, std::size_t n, Scratch& s, Counts& counts);
  void move_groups(const Where& where, std::size_t first, std::size_t n, Scratch& s, Counts& counts);
  float* at(AlignedVector<float>& values, std::size_t i) { return values.data() + i * prior_.dim(); }

  const ProductPrior& prior_;
  S& score_;
  KernelConfig kernel_;
  ThreadPool& pool_;
  std::span<const double> cumulative_;
  StartCloud start_;
  std::size_t n_ = 0;
  AlignedVector<float> u_, gradient_;  // [n, dim]; gradient where the kernel needs it
  std::vector<double> log_density_;    // [n], likewise
  std::vector<std::uint32_t> groups_;  // [n], or empty
  double h_ = 0.0;                     // goes on from level to level
  std::uint64_t score_evals_ = 0;
  std::vector<std::unique_ptr<Scratch>> scratch_;  // [threads]
  Watch watch_ = {};
  bool stopped_ = false;
};

template <ContinuousScore S>
void ContinuousParticles<S>::sample(std::size_t n, std::uint64_t seed) {
  n_ = n;
  h_ = kernel_.step_size;
  stopped_ = false;
  StartPoints start = draw_start(prior_, cumulative_, start_, n, seed, pool_);
  u_ = std::move(start.u);
  groups_ = std::move(start.groups);
}

template <ContinuousScore S>
void ContinuousParticles<S>::resample(std::span<const std::uint32_t> parents) {
  const AlignedVector<float> old = std::move(u_);
  const std::vector<std::uint32_t> old_groups = groups_;
  const std::size_t dim = prior_.dim();
  n_ = parents.size();
  u_.resize(n_ * dim);
  groups_.resize(old_groups.empty() ? 0 : n_);
  for (std::size_t i = 0; i < n_; ++i) {
    std::copy_n(old.data() + parents[i] * dim, dim, at(u_, i));
    if (!groups_.empty()) groups_[i] = old_groups[parents[i]];
  }
}

template <ContinuousScore S>
MoveStats ContinuousParticles<S>::move(double level, std::size_t k, std::uint64_t seed) {
  fill_caches();
  const AlignedVector<float> before = u_;
  const bool frozen = !kernel_.frozen_steps.empty();
  Where where{level, k, 0, seed,
              frozen ? kernel_.frozen_steps[std::min(k, kernel_.frozen_steps.size() - 1)] : h_};
  Counts total;
  const auto run_until = [&](std::size_t end) {
    const Counts counts = run_steps(where, end);
    where.step = end;
    total.proposed += counts.proposed;
    total.accepted += counts.accepted;
    score_evals_ += counts.scored;
    stopped_ = !goes_on(watch_, progress_of(end, kernel_.moves));
    return static_cast<double>(counts.accepted) / static_cast<double>(counts.proposed);
  };
  while (!frozen && where.step < kernel_.burn_in && !stopped_) {
    const bool adapts = kernel_.kind_of(where.step, prior_) == kernel_.kind;
    const double acceptance = run_until(where.step + 1);
    if (!adapts) continue;
    where.h *= std::exp(kernel_.adaptation * (acceptance - kernel_.wanted()));
    if (kernel_.kind == KernelKind::kPcn)
      where.h = std::min(where.h, 0.5);  // then proposals are independent draws
  }
  const std::size_t stretch = watch_ ? kernel_.moves / kAsked + 1 : kernel_.moves;
  while (where.step < kernel_.moves && !stopped_) run_until(std::min(kernel_.moves, where.step + stretch));
  h_ = where.h;
  const JumpStats jump = measure_jump(n_, prior_.dim(), {before.data(), prior_.dim()}, rows());
  return {.proposed = total.proposed,
          .accepted = total.accepted,
          .moves = where.step,
          .step_size = where.h,
          .mean_squared_jump = jump.mean_squared,
          .parent_correlation = jump.correlation};
}

template <ContinuousScore S>
void ContinuousParticles<S>::fill_caches() {
  const KernelNeeds needs = needs_of(kernel_.kind, prior_);
  if (needs.log_density) log_density_.resize(n_);
  if (needs.gradient) gradient_.resize(n_ * prior_.dim());
  fill_cache(0, n_);
}

template <ContinuousScore S>
void ContinuousParticles<S>::fill_cache(std::size_t first, std::size_t n) {
  const KernelNeeds needs = needs_of(kernel_.kind, prior_);
  if (needs.log_density) prior_.log_density(n, rows().from(first), std::span(log_density_).subspan(first, n));
  if (needs.gradient) prior_.grad_log_density(n, rows().from(first), {at(gradient_, first), prior_.dim()});
}

// Moves [where.step, end) of every particle. Blocks do not touch each other's, so a thread takes one through
// all of them.
template <ContinuousScore S>
typename ContinuousParticles<S>::Counts ContinuousParticles<S>::run_steps(Where where, std::size_t end) {
  const std::size_t n_blocks = (n_ + kRows - 1) / kRows;
  std::vector<Counts> counts(n_blocks);
  pool_.for_each_block(n_blocks, [&](std::size_t block, std::size_t worker) {
    if (!scratch_[worker]) scratch_[worker] = std::make_unique<Scratch>(score_, prior_.dim());
    Where now = where;
    const std::size_t first = block * kRows, n = std::min(kRows, n_ - first);
    for (; now.step < end; ++now.step) {
      move_points(now, first, n, *scratch_[worker], counts[block]);
      if (!cumulative_.empty() && now.step % kernel_.group_every == 0)
        move_groups(now, first, n, *scratch_[worker], counts[block]);
    }
  });
  Counts total;
  for (const Counts& c : counts) {
    total.proposed += c.proposed;
    total.accepted += c.accepted;
    total.scored += c.scored;
  }
  return total;
}

template <ContinuousScore S>
void ContinuousParticles<S>::move_points(const Where& where, std::size_t first, std::size_t n, Scratch& s,
                                         Counts& counts) {
  const std::size_t dim = prior_.dim();
  const KernelNeeds needs = needs_of(kernel_.kind, prior_);
  const KernelKind kind = kernel_.kind_of(where.step, prior_);
  const bool for_tails = kind != kernel_.kind;
  for (std::size_t i = 0; i < n; ++i) {
    s.index[i] = step_index(where.k, where.step, first + i);
    fill_normals({where.seed, Stream::kMoveNormals}, s.index[i], dim, s.noise.data() + i * dim);
  }
  propose(kind, prior_, for_tails ? kernel_.tail_step(where.step) : where.h,
          {.n = n,
           .u = rows().from(first),
           .gradient = {needs.gradient ? at(gradient_, first) : nullptr, dim},
           .log_density = needs.log_density ? std::span<const double>(log_density_).subspan(first, n)
                                            : std::span<const double>(),
           .noise = {s.noise.data(), dim},
           .proposed = {s.proposed.data(), dim},
           .proposed_gradient = {s.gradient.data(), dim},
           .proposed_log_density = s.log_density,
           .log_ratio = s.log_ratio},
          where.seed, s.index, s.mixing);
  std::size_t open = 0;  // candidates: proposals that the prior lets pass
  for (std::size_t i = 0; i < n; ++i) {
    const double u = unit_double(uniform64({where.seed, Stream::kMoveAccept}, s.index[i], 0));
    if (!(s.log_ratio[i] >= 0.0 || u < std::exp(s.log_ratio[i]))) continue;
    std::copy_n(s.proposed.data() + i * dim, dim, s.candidates.data() + open * dim);
    s.group[open] = groups_.empty() ? 0 : groups_[first + i];
    s.which[open++] = static_cast<std::uint32_t>(i);
  }
  score_.at_least(where.level, open, {s.candidates.data(), dim},
                  std::span<const std::uint32_t>(s.group).first(groups_.empty() ? 0 : open),
                  std::span(s.passed).first(open), *s.score);
  for (std::size_t c = 0; c < open; ++c) {
    if (!s.passed[c]) continue;
    const std::size_t i = s.which[c];
    std::copy_n(s.candidates.data() + c * dim, dim, at(u_, first + i));
    ++counts.accepted;
    if (for_tails) {
      fill_cache(first + i);
      continue;
    }
    if (needs.gradient) std::copy_n(s.gradient.data() + i * dim, dim, at(gradient_, first + i));
    if (needs.log_density) log_density_[first + i] = s.log_density[i];
  }
  counts.proposed += n;
  counts.scored += open;
}

// Another group from its prior, with the residual as it is: accepted iff the score allows. Not part of the
// acceptance that the step size follows.
template <ContinuousScore S>
void ContinuousParticles<S>::move_groups(const Where& where, std::size_t first, std::size_t n, Scratch& s,
                                         Counts& counts) {
  const std::size_t dim = prior_.dim();
  std::size_t open = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double u = unit_double(
        uniform64({where.seed, Stream::kMoveAccept}, step_index(where.k, where.step, first + i), 1));
    const auto group = static_cast<std::uint32_t>(
        std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, u) - cumulative_.begin());
    if (group == groups_[first + i]) continue;
    std::copy_n(at(u_, first + i), dim, s.candidates.data() + open * dim);
    s.group[open] = group;
    s.which[open++] = static_cast<std::uint32_t>(i);
  }
  score_.at_least(where.level, open, {s.candidates.data(), dim},
                  std::span<const std::uint32_t>(s.group).first(open), std::span(s.passed).first(open),
                  *s.score);
  for (std::size_t c = 0; c < open; ++c)
    if (s.passed[c]) groups_[first + s.which[c]] = s.group[c];
  counts.scored += open;
}

}  // namespace deeptail
