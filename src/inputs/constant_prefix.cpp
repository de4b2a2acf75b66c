#include <algorithm>

#include "deeptail/law.h"

namespace deeptail {

std::size_t constant_prefix_length(const InputLaw& law) {
  std::size_t n = law.facts().max_length;
  for (const std::size_t part : law.free_parts()) n = std::min(n, law.first_position(part));
  // Inputs of a law without tables may end right behind it.
  const std::size_t most =
      law.tables() != nullptr ? law.facts().max_length - 1 : n - std::min<std::size_t>(n, 1);
  return std::min(n, most);
}

std::vector<TokenId> constant_prefix(const InputLaw& law, ThreadPool& pool) {
  const std::size_t n = constant_prefix_length(law);
  if (n == 0) return {};
  Inputs any;
  law.make(std::vector<std::uint64_t>(law.facts().n_parts, 0), any, pool);
  const auto row = any.sequence(0).first(n);
  return {row.begin(), row.end()};
}

}  // namespace deeptail
