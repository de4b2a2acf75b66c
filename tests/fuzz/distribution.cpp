// Any bytes as a distribution: either refused with an InputError, or tables that draw their own tokens.
#include <cmath>
#include <cstdlib>

#include "deeptail/inputs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const deeptail::Distribution dist =
        deeptail::parse_distribution({reinterpret_cast<const char*>(data), size}, "fuzz");
    std::vector<deeptail::TokenId> tokens(dist.length());
    deeptail::sample(dist, 1, 2, tokens);
    if (!std::isfinite(dist.log_probability(tokens))) std::abort();
    for (const deeptail::TokenTable& table : dist.tables) {
      double sum = 0.0;
      for (std::size_t i = 0; i < table.size(); ++i) {
        if (table.draw(table.last_unit(i)) != table.ids()[i]) std::abort();
        sum += table.probability(i);
      }
      if (table.last_unit(table.size() - 1) != ~std::uint64_t{0} || !(std::abs(sum - 1.0) < 1e-12))
        std::abort();
    }
  } catch (const deeptail::InputError&) {
  }
  return 0;
}
