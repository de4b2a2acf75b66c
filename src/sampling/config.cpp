#include <algorithm>
#include <cmath>

#include "deeptail/sampling.h"

namespace deeptail {

bool SamplingConfig::stops(TokenId token) const { return std::ranges::find(stop, token) != stop.end(); }

void SamplingConfig::validate(std::size_t d_vocab) const {
  // Below, logits over the temperature leave the range of float32.
  constexpr double kLeast = 1e-6, kMost = 1e6;
  if (!(temperature >= kLeast && temperature <= kMost))
    throw InputError("temperature {}: expected {} to {}; for the most likely token ask for greedy decoding",
                     temperature, kLeast, kMost);
  if (!(top_p > 0.0 && top_p <= 1.0)) throw InputError("top-p {}: expected more than 0 and at most 1", top_p);
  if (max_tokens == 0) throw InputError("0 new tokens: expected at least 1");
  for (const TokenId id : stop)
    if (id < 0 || static_cast<std::size_t>(id) >= d_vocab)
      throw InputError("stop token {}: expected 0 to d_vocab - 1 = {}", id, d_vocab - 1);
}

double decoding_flops(const ModelConfig& c, std::size_t first, std::size_t length) {
  if (length <= first) return 0.0;
  const double head = 2.0 * static_cast<double>(c.d_model) * static_cast<double>(c.d_vocab);
  const double before = first == 0 ? 0.0 : forward_flops(c, first) - head;
  return forward_flops(c, length) - head - before + head * static_cast<double>(length - first);
}

}  // namespace deeptail
