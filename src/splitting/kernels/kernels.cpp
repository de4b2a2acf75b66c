#include <cmath>

#include "deeptail/kernels.h"

namespace deeptail {

double KernelConfig::wanted() const {
  if (wanted_acceptance > 0.0) return wanted_acceptance;
  switch (kind) {
    case KernelKind::kRwmh:
      return 0.234;
    case KernelKind::kPcn:
      return 0.3;
    default:
      return 0.57;
  }
}

KernelKind KernelConfig::kind_of(std::size_t move, const ProductPrior& prior) const {
  const bool for_tails = tail_every > 0 && move % tail_every == tail_every - 1;
  return steps_are_fixed() && for_tails && !prior.gaussian() ? KernelKind::kPcn : kind;
}

double KernelConfig::tail_step(std::size_t move) const {
  constexpr std::size_t kSizes = 8;  // b^2 = 2h from 1/2 to 1/256
  return std::ldexp(0.25, -static_cast<int>(move / tail_every % kSizes));
}

void KernelConfig::validate() const {
  if (moves == 0 || moves > kMostMoves)
    throw InputError("{} moves: expected 1 to {} per level", moves, kMostMoves);
  if (burn_in > moves)
    throw InputError("burn-in {}: expected at most the {} moves of a level", burn_in, moves);
  if (!(step_size > 0.0) || !std::isfinite(step_size))
    throw InputError("step size {}: expected a positive number", step_size);
  if (!std::isfinite(adaptation)) throw InputError("adaptation {}: expected a number", adaptation);
  if (!(wanted_acceptance >= 0.0 && wanted_acceptance < 1.0))
    throw InputError("wanted acceptance {}: expected a number from 0 to 1", wanted_acceptance);
  if (group_every == 0) throw InputError("group moves every 0 moves: expected at least 1");
}

KernelNeeds needs_of(KernelKind kind, const ProductPrior& prior) {
  return {.log_density = kind != KernelKind::kPcn,
          .gradient = kind == KernelKind::kMala || (kind == KernelKind::kMapla && prior.gaussian())};
}

JumpStats measure_jump(std::size_t n, std::size_t dim, ConstRows before, ConstRows after) {
  double squares = 0.0, together = 0.0, spread_before = 0.0, spread_after = 0.0;
  const auto count = static_cast<double>(n);
  for (std::size_t j = 0; j < dim; ++j) {
    double mean_before = 0.0, mean_after = 0.0;
    for (std::size_t i = 0; i < n; ++i) mean_before += before.row(i)[j], mean_after += after.row(i)[j];
    for (std::size_t i = 0; i < n; ++i) {
      const double b = before.row(i)[j] - mean_before / count, a = after.row(i)[j] - mean_after / count;
      const double jump = static_cast<double>(after.row(i)[j]) - before.row(i)[j];
      squares += jump * jump;
      together += a * b;
      spread_before += b * b;
      spread_after += a * a;
    }
  }
  const double spread = std::sqrt(spread_before * spread_after);
  return {squares / (count * static_cast<double>(dim)), spread > 0.0 ? together / spread : 1.0};
}

}  // namespace deeptail
