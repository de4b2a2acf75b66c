// Rare events with known probabilities: the splitting core checked on the user's machine (deeptail selftest).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "deeptail/kernels.h"
#include "deeptail/splitting.h"

namespace [[gnu::visibility("default")]] deeptail {

enum class EventShape {
  kLinear,     // direction . u >= threshold; along one coordinate for a t prior
  kSphere,     // |u|^2 >= threshold; in two dimensions for a t prior
  kMax,        // the largest of the first n_margins coordinates >= threshold
  kQuantised,  // the linear score in steps of `step`
  kSum,        // the sum of all coordinates >= threshold
};

struct ClosedFormProblem {
  std::string name = {};
  EventShape shape = EventShape::kLinear;
  PriorKind prior = PriorKind::kGaussian;
  std::size_t dim = 2;
  KernelKind kernel = KernelKind::kMala;
  double log_p = 0.0;      // the truth
  double threshold = 0.0;  // of the shape's value; the score is the value minus this
  std::size_t n_margins = 1;
  double step = 0.0;
};
// A problem whose probability is p, by the inverse of the closed form.
ClosedFormProblem make_problem(EventShape shape, PriorKind prior, std::size_t dim, double p,
                               KernelKind kernel);
// Linear and spherical events, maxima of margins and quantised scores under Gaussian and Student-t priors,
// d = 2 to 512, 1e-3 to 1e-9.
std::vector<ClosedFormProblem> selftest_problems();

class ClosedFormScore {
 public:
  struct Scratch {};
  explicit ClosedFormScore(const ClosedFormProblem& problem) : problem_(problem) {}
  std::unique_ptr<Scratch> make_scratch() const { return std::make_unique<Scratch>(); }
  void evaluate(std::size_t n, ConstRows u, std::span<const std::uint32_t> groups,
                std::span<double> values) const;
  void at_least(double level, std::size_t n, ConstRows u, std::span<const std::uint32_t> groups,
                std::span<std::uint8_t> passed, Scratch& scratch) const;

 private:
  double value(const float* u) const;
  const ClosedFormProblem& problem_;
};

struct ClosedFormConfig {
  std::size_t n_particles = 200, pilot_particles = 400, moves = 40, replicas = 8;
  std::uint64_t seed = 1;
};
struct ClosedFormResult {
  SplittingRun pilot;              // adaptive levels and step sizes
  std::vector<SplittingRun> runs;  // replicas with both frozen
  ReplicaSummary summary;
};
ClosedFormResult run_closed_form(const ClosedFormProblem& problem, const ClosedFormConfig& config,
                                 ThreadPool& pool);

}  // namespace deeptail
