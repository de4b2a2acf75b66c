// Activations: final residuals at the last position (blocks.{last}.hook_resid_post, before ln_final), their
// moments, and the coordinates in which they have mean 0 and unit covariance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "deeptail/inputs.h"
#include "deeptail/law.h"
#include "deeptail/model.h"
#include "deeptail/watch.h"

namespace [[gnu::visibility("default")]] deeptail {

// The first-layer rows of a distribution's tokens; null when they would take too much memory.
std::unique_ptr<const FirstLayerTable> first_layer_table(const Transformer& model, const Distribution& dist,
                                                         ThreadPool& pool);

// Runs samples of a law through a model up to the final residual. Holds the scratch space, so that
// many calls allocate little. The outcome for a sample depends on the seed and its number alone.
class ResidualRunner {
 public:
  // All must outlive it.
  ResidualRunner(const Transformer& model, const Distribution& dist, std::uint64_t seed, ThreadPool& pool);
  ResidualRunner(const Transformer& model, const InputLaw& law, std::uint64_t seed, ThreadPool& pool);

  // out: [n, d_model] = residuals of samples [first, first + n).
  void run(std::uint64_t first, std::size_t n, Rows out);
  // Input i of the last run: [its length].
  std::span<const TokenId> input(std::size_t i) const { return inputs_.sequence(i); }

 private:
  const Transformer& model_;
  const Distribution* dist_;
  const InputLaw* law_ = nullptr;  // where there is no distribution
  std::uint64_t seed_;
  ThreadPool& pool_;
  std::unique_ptr<const FirstLayerTable> table_;  // none without tables, or when it would be too large
  Inputs inputs_;                                 // [n]
};

struct Activations {
  std::size_t n = 0, d_model = 0;
  AlignedVector<float> values = {};  // [n, d_model]
  // [n]: the token at the last position that varies, for priors conditioned on it; empty where no position
  // is known to (a user's file, a law without tables).
  std::vector<TokenId> last_tokens = {};
  // [n, d_model]: those of somebody else, read where they are, who must outlive this; then there are no values.
  std::span<const float> borrowed = {};

  std::span<const float> all() const { return borrowed.empty() ? std::span<const float>(values) : borrowed; }
  ConstRows rows() const { return {all().data(), d_model}; }
};

struct CaptureConfig {
  std::uint64_t count = 1 << 16;
  std::uint64_t seed = 1;
  void validate() const;
};
// Memory that so many activations take.
double capture_bytes(std::uint64_t count, std::size_t d_model);
// Activations of `count` inputs. Their numbers start at 2^62, which ground truth and sampling never reach, so
// an estimate never sees the inputs it is compared with. The watch is told inputs, between
// batches; where it ends the capture early there is what was captured until then. Throws InputError when they
// would not fit into memory.
Activations capture(const Transformer& model, const InputLaw& law, const CaptureConfig& config,
                    ThreadPool& pool, const Watch& watch = {});
Activations capture(const Transformer& model, const Distribution& dist, const CaptureConfig& config,
                    ThreadPool& pool, const Watch& watch = {});

// A user's file of activations: one tensor [n, d_model].
Activations read_activations(const std::string& path);
void write_activations(const std::string& path, const Activations& activations);

// Throws InputError, beginning with `where`, for a value that is NaN or infinite: a model may overflow.
void check_finite(const Activations& activations, const std::string& where);
// Throws InputError, beginning with `where`, unless moments can be taken: width d_model, more rows than
// columns, every value finite, no constant column.
void check_activations(const Activations& activations, std::size_t d_model, const std::string& where);

// --- moments and whitening ---

struct Moments {
  std::size_t n = 0, d = 0;
  std::vector<double> mean;        // [d]
  std::vector<double> covariance;  // [d, d], divided by n
};
// Accumulated in double over fixed blocks of rows: the same for any number of threads.
Moments moments(std::size_t n, std::size_t d, ConstRows x, ThreadPool& pool);

// x = mean + u L^T with L L^T = covariance + ridge * I, so u has (nearly) unit covariance. (The paper's A is
// L.)
struct Whitening {
  std::size_t d = 0;
  std::vector<double> mean;  // [d]
  std::vector<double> l;     // [d, d] lower triangular
  double ridge = 0.0;        // as added to the diagonal
  bool singular = false;     // without the ridge there is no such L

  void whiten(std::size_t n, ConstRows x, Rows u) const;  // u: [n, d] = (x - mean) L^-T
  PackedMatrix unwhitening() const;                       // the product with it, bias included, gives x
  // y = L^-T u, so that y . (x - mean) is the coordinate of x along the whitened unit vector u. [d]
  std::vector<double> dual_direction(std::span<const double> u) const;
};
// The ridge is relative_ridge times the mean of the covariance's diagonal.
Whitening whitening(const Moments& moments, double relative_ridge = 1e-6);
// For an estimate's warnings; "" when there is nothing to say.
std::string ridge_warning(const Whitening& whitening);

}  // namespace deeptail
