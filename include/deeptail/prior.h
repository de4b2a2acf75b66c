// Priors of whitened activations: products of equal marginals, and groups with a mean of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "deeptail/activations.h"
#include "deeptail/enum_names.h"

namespace [[gnu::visibility("default")]] deeptail {

enum class PriorKind {
  kGaussian,
  kStudentT,         // unit scale, variance nu / (nu - 2), as the paper writes it
  kStudentTMatched,  // unit variance
};
template <>
struct EnumNames<PriorKind> {
  static constexpr std::string_view kAll[] = {"gaussian", "student_t", "student_t_matched"};
};

// Independent coordinates of one law, centred at 0.
class ProductPrior {
 public:
  // nu: degrees of freedom, an odd whole number from 3, so that chi-squared numbers need no inversion.
  ProductPrior(PriorKind kind, std::size_t dim, int nu = 5);

  PriorKind kind() const { return kind_; }
  bool gaussian() const { return kind_ == PriorKind::kGaussian; }
  std::size_t dim() const { return dim_; }
  double nu() const { return nu_; }
  double scale() const { return scale_; }

  // out: [n, dim]; row i depends on the seed and first + i alone.
  void sample(std::uint64_t seed, std::uint64_t first, std::size_t n, Rows out) const;
  // log_p: [n], up to a constant of the prior.
  void log_density(std::size_t n, ConstRows u, std::span<double> log_p) const;
  void grad_log_density(std::size_t n, ConstRows u, Rows out) const;
  // Student-t as a scale mixture u = scale g / sqrt(w): w given u, [dim], keyed by (seed, index).
  void sample_mixing(std::uint64_t seed, std::uint64_t index, const float* u, float* w) const;

 private:
  PriorKind kind_;
  std::size_t dim_;
  int nu_;
  double scale_;
};

// The conditioned prior: an activation is the mean of its group (the token at the last position that varies)
// plus a residual; residuals are whitened together.
struct GroupedCloud {
  std::vector<double> cumulative;    // [n_groups]: share of activations in groups up to this one; ends in 1
  AlignedVector<float> means;        // [n_groups, d_model]
  std::vector<std::uint32_t> group;  // [n]: of each activation
  AlignedVector<float> residuals;    // [n, d_model]
  Whitening whitening;               // of the residuals

  std::size_t n_groups() const { return cumulative.size(); }
};
// Groups with fewer than min_size activations are taken together as one. Throws InputError when the
// activations carry no tokens.
GroupedCloud group_activations(const Activations& activations, std::size_t min_size, double relative_ridge,
                               ThreadPool& pool);

}  // namespace deeptail
