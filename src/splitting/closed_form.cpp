#include "deeptail/closed_form.h"

#include <complex>

#include "core/statistics.h"
#include "splitting/continuous_particles.h"

namespace deeptail {

namespace {

using namespace std::complex_literals;

constexpr int kNu = 5;

double scale_of(PriorKind prior) {
  return prior == PriorKind::kStudentTMatched ? std::sqrt((kNu - 2.0) / kNu) : 1.0;
}

// Where one coordinate's upper tail is p.
double coordinate_quantile(PriorKind prior, double p) {
  if (prior == PriorKind::kGaussian) return normal_upper_quantile(p);
  return scale_of(prior) * student_t_upper_quantile(p, kNu);
}

// Pr[u1^2 + u2^2 >= r^2] for two t coordinates: one is integrated, the other's tail is closed.
double t_disc_tail(PriorKind prior, double r) {
  const double reach = r / scale_of(prior);
  // x = reach sin(a) makes the integrand smooth up to the end.
  const auto inside = [&](double a) {
    return student_t_density(reach * std::sin(a), kNu) * 2.0 * student_t_tail(reach * std::cos(a), kNu) *
           reach * std::cos(a);
  };
  constexpr int kSteps = 200;  // relative error below 1e-8 for tails from 1e-8 on
  const double step = 0.5 * M_PI / kSteps;
  double sum = inside(0.0);  // the other end is 0
  for (int i = 1; i < kSteps; ++i) sum += (i % 2 == 1 ? 4.0 : 2.0) * inside(i * step);
  return 2.0 * sum * step / 3.0 + 2.0 * student_t_tail(reach, kNu);
}

// Pr[a sum of dim t coordinates >= x], for x above 0: the inversion of the characteristic function
// e^-a (1 + a + a^2 / 3), a = sqrt(5) scale s, along the imaginary axis s = i y, where nothing oscillates against
// e^-xy and the one half of the usual formula is gone:
//   -1 / pi times the integral of e^-xy Im (e^-ia (1 + ia - a^2 / 3))^dim / y.
double t_sum_tail(PriorKind prior, std::size_t dim, double x) {
  static_assert(kNu == 5);
  const double width = std::sqrt(static_cast<double>(kNu)) * scale_of(prior), n = static_cast<double>(dim);
  const auto part = [&](double y) {
    const double a = width * y;
    const std::complex<double> log_phi = std::log(std::complex<double>(1.0 - a * a / 3.0, a)) - 1.0i * a;
    return std::exp(n * log_phi - x * y).imag() / y;
  };
  // What is beyond is below e^-60 of it, for dim of at most 64 and sums beyond their bulk.
  constexpr int kParts = 4000;
  const double step = (60.0 + 2.0 * n) / x / kParts;
  double sum = 0.0;  // nothing at 0
  for (int i = 1; i < kParts; ++i) sum += (i % 2 == 1 ? 4.0 : 2.0) * part(i * step);
  return -sum * step / 3.0 / M_PI;
}

// x where tail(x), which falls, is p.
template <class Tail>
double log_quantile(const Tail& tail, double p) {
  double low = 0.0, high = 8.0;   // of log x
  for (int i = 0; i < 42; ++i) {  // to 2e-12
    const double middle = 0.5 * (low + high);
    (tail(std::exp(middle)) > p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

double sphere_radius2(PriorKind prior, std::size_t dim, double p) {
  if (prior == PriorKind::kGaussian) return chi_squared_upper_quantile(p, static_cast<double>(dim));
  if (dim != 2) throw std::invalid_argument("a t prior's sphere has a closed form in two dimensions only");
  return std::exp(2.0 * log_quantile([&](double r) { return t_disc_tail(prior, r); }, p));
}

const char* shape_name(EventShape shape) {
  switch (shape) {
    case EventShape::kLinear:
      return "linear";
    case EventShape::kSphere:
      return "sphere";
    case EventShape::kMax:
      return "max";
    case EventShape::kQuantised:
      return "quantised";
    case EventShape::kSum:
      return "sum";
  }
  return "";
}

constexpr std::size_t kMargins = 4;
constexpr double kStep = 0.25;

}  // namespace

ClosedFormProblem make_problem(EventShape shape, PriorKind prior, std::size_t dim, double p,
                               KernelKind kernel) {
  ClosedFormProblem out{.shape = shape, .prior = prior, .dim = dim, .kernel = kernel, .log_p = std::log(p)};
  out.name =
      fmt::format("{} {} d={} p={:.0e} {}", shape_name(shape), name_of(prior), dim, p, name_of(kernel));
  switch (shape) {
    case EventShape::kLinear:
      out.threshold = coordinate_quantile(prior, p);
      break;
    case EventShape::kSphere:
      out.threshold = sphere_radius2(prior, dim, p);
      break;
    case EventShape::kMax:
      out.n_margins = std::min(kMargins, dim);
      out.threshold =
          coordinate_quantile(prior, -std::expm1(std::log1p(-p) / static_cast<double>(out.n_margins)));
      break;
    case EventShape::kQuantised:
      // The threshold goes to the next step, and the probability with it.
      out.step = kStep;
      out.threshold = std::ceil(coordinate_quantile(prior, p) / kStep) * kStep;
      out.log_p = prior == PriorKind::kGaussian
                      ? std::log(normal_tail(out.threshold))
                      : std::log(student_t_tail(out.threshold / scale_of(prior), kNu));
      break;
    case EventShape::kSum:
      if (prior == PriorKind::kGaussian)
        out.threshold = std::sqrt(static_cast<double>(dim)) * normal_upper_quantile(p);
      else
        out.threshold = std::exp(log_quantile([&](double x) { return t_sum_tail(prior, dim, x); }, p));
      break;
  }
  return out;
}

std::vector<ClosedFormProblem> selftest_problems() {
  using enum EventShape;
  using enum PriorKind;
  using enum KernelKind;
  return {make_problem(kLinear, kGaussian, 2, 1e-3, kMala),
          make_problem(kLinear, kGaussian, 32, 1e-6, kMala),
          make_problem(kLinear, kGaussian, 128, 1e-9, kPcn),
          make_problem(kLinear, kGaussian, 512, 1e-6, kMala),
          make_problem(kSphere, kGaussian, 2, 1e-4, kRwmh),
          make_problem(kSphere, kGaussian, 32, 1e-6, kMala),
          make_problem(kSphere, kGaussian, 512, 1e-4, kMala),
          make_problem(kMax, kGaussian, 16, 1e-6, kMala),
          make_problem(kQuantised, kGaussian, 16, 1e-6, kMala),
          make_problem(kLinear, kStudentT, 2, 1e-4, kMala),
          make_problem(kLinear, kStudentT, 32, 1e-6, kMapla),
          make_problem(kLinear, kStudentTMatched, 128, 1e-9, kPcn),
          make_problem(kSum, kStudentT, 16, 2.2e-7, kMala),
          make_problem(kSphere, kStudentT, 2, 1e-5, kMapla),
          make_problem(kMax, kStudentTMatched, 8, 1e-5, kPcn),
          make_problem(kQuantised, kStudentT, 8, 1e-4, kPcn)};
}

double ClosedFormScore::value(const float* u) const {
  const ClosedFormProblem& p = problem_;
  switch (p.shape) {
    case EventShape::kLinear:
    case EventShape::kQuantised: {
      // A t prior is not round: only one coordinate's tail is closed. A Gaussian's direction is (1, ..., 1) /
      // sqrt(d).
      double linear = u[0];
      if (p.prior == PriorKind::kGaussian) {
        for (std::size_t j = 1; j < p.dim; ++j) linear += u[j];
        linear /= std::sqrt(static_cast<double>(p.dim));
      }
      return p.shape == EventShape::kLinear ? linear : std::floor(linear / p.step) * p.step;
    }
    case EventShape::kSphere: {
      double sum = 0.0;
      for (std::size_t j = 0; j < p.dim; ++j) sum += static_cast<double>(u[j]) * u[j];
      return sum;
    }
    case EventShape::kMax:
      return *std::max_element(u, u + p.n_margins);
    case EventShape::kSum: {
      double sum = 0.0;
      for (std::size_t j = 0; j < p.dim; ++j) sum += u[j];
      return sum;
    }
  }
  return 0.0;
}

void ClosedFormScore::evaluate(std::size_t n, ConstRows u, std::span<const std::uint32_t>,
                               std::span<double> values) const {
  for (std::size_t i = 0; i < n; ++i) values[i] = value(u.row(i)) - problem_.threshold;
}

void ClosedFormScore::at_least(double level, std::size_t n, ConstRows u, std::span<const std::uint32_t>,
                               std::span<std::uint8_t> passed, Scratch&) const {
  for (std::size_t i = 0; i < n; ++i) passed[i] = value(u.row(i)) - problem_.threshold >= level;
}

ClosedFormResult run_closed_form(const ClosedFormProblem& problem, const ClosedFormConfig& config,
                                 ThreadPool& pool) {
  const ProductPrior prior(problem.prior, problem.dim, kNu);
  ClosedFormScore score(problem);
  KernelConfig kernel{
      .kind = problem.kernel, .moves = config.moves, .burn_in = (config.moves + 1) / 2, .step_size = 0.1};
  ContinuousParticles pilot(prior, score, kernel, pool);
  SplittingConfig splitting{.n_particles = config.pilot_particles};
  ClosedFormResult out;
  out.pilot = run_splitting(pilot, splitting, derived_seed(config.seed, 0));
  splitting.n_particles = config.n_particles;
  for (const Level& level : out.pilot.levels) {
    splitting.levels.push_back(level.level);
    if (level.moves.moves > 0) kernel.frozen_steps.push_back(level.moves.step_size);
  }
  if (splitting.levels.empty() || splitting.levels.back() < 0.0) splitting.levels.push_back(0.0);
  if (kernel.frozen_steps.empty()) kernel.frozen_steps.push_back(kernel.step_size);
  ContinuousParticles particles(prior, score, kernel, pool);
  for (std::size_t r = 0; r < config.replicas; ++r)
    out.runs.push_back(run_splitting(particles, splitting, derived_seed(config.seed, r + 1)));
  out.summary = combine_replicas(out.runs);
  return out;
}

}  // namespace deeptail
