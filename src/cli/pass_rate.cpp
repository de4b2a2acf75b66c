#include "cli/pass_rate.h"

#include "core/stopwatch.h"

namespace deeptail::cli {

double passes_per_second(const Transformer& model, std::size_t length, ThreadPool& pool) {
  constexpr double kLongEnough = 0.2;
  constexpr std::size_t kStride = 7919;
  const std::size_t d = model.config().d_model;
  double seconds = 0.0;
  std::size_t n = 2 * pool.size();
  // The first round touches the weights, the last one counts.
  for (bool first = true; first || seconds < kLongEnough; first = false, n *= 2) {
    // All different: what inputs have in common at their beginning is computed once.
    std::vector<TokenId> tokens(n * length);
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = static_cast<TokenId>(i * kStride % model.config().d_vocab);
    AlignedVector<float> resid(n * d);
    const Stopwatch stopwatch;
    final_residuals(model, {tokens, length}, pool, {resid.data(), d});
    seconds = stopwatch.seconds();
  }
  return static_cast<double>(n / 2) / seconds;
}

std::string duration_text(double seconds) {
  struct Unit {
    const char* name;
    double seconds;
  };
  constexpr Unit kUnits[] = {{"days", 86400.0}, {"hours", 3600.0}, {"minutes", 60.0}};
  for (const Unit& unit : kUnits)
    if (seconds >= 1.5 * unit.seconds)
      return fmt::format("{:.{}f} {}", seconds / unit.seconds, seconds < 10.0 * unit.seconds ? 1 : 0,
                         unit.name);
  return fmt::format("{:.{}f} seconds", seconds, seconds < 10.0 ? 1 : 0);
}

}  // namespace deeptail::cli
