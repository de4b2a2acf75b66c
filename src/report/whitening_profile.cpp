#include <algorithm>
#include <functional>

#include "deeptail/load.h"
#include "deeptail/report.h"

namespace deeptail {

namespace {

// The diagonal of the covariance, largest first. [d]
std::vector<double> sorted_variances(const Moments& m) {
  std::vector<double> out(m.d);
  for (std::size_t j = 0; j < m.d; ++j) out[j] = m.covariance[j * m.d + j];
  std::sort(out.begin(), out.end(), std::greater<>());
  return out;
}

}  // namespace

WhiteningProfile whitening_profile(const Activations& activations, ThreadPool& pool) {
  const std::size_t fitted = activations.n / 4 * 3, held_out = activations.n - fitted,
                    d = activations.d_model;
  const Whitening w = whitening(moments(fitted, d, activations.rows(), pool));
  const ConstRows second{activations.values.data() + fitted * d, d};
  AlignedVector<float> u(held_out * d);  // [held_out, d]
  w.whiten(held_out, second, {u.data(), d});
  return {.before = sorted_variances(moments(held_out, d, second, pool)),
          .after = sorted_variances(moments(held_out, d, {u.data(), d}, pool))};
}

ReportExtras whitening_of(const Report& report, ThreadPool& pool, const Watch& watch) {
  constexpr std::uint64_t kActivations = 2048;
  ReportExtras out;
  std::string pair;  // at work
  try {
    for (const std::string& name : report.models) {
      pair = name;
      const LoadedModel model = load_model(name);
      for (const auto& used : report.header.models)
        if (used.name == name && used.sha256 != model.sha256)
          throw InputError(
              "the model found under this name has other weights or another config.json than the run's");
      for (const std::string& dist : report.dists) {
        pair = fmt::format("{} on {}", name, dist);
        out.whitening.push_back(whitening_profile(
            capture(model.transformer, load_distribution(dist, model), {.count = kActivations}, pool), pool));
        out.whitening.back().model = name;
        out.whitening.back().dist = dist;
        if (!goes_on(watch, progress_of(out.whitening.size(), report.models.size() * report.dists.size())))
          return out;
      }
    }
  } catch (const InputError& e) {
    out.whitening.clear();
    out.no_whitening = fmt::format("it needs the run's models, and {} did not load: {}", pair, e.what());
  }
  return out;
}

}  // namespace deeptail
