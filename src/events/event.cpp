// What all events have.
#include "deeptail/event.h"

#include "core/random.h"

namespace deeptail {

Work& Work::operator+=(const Work& other) {
  forwards += other.forwards;
  rescored += other.rescored;
  logits += other.logits;
  flops += other.flops;
  device_seconds += other.device_seconds;
  return *this;
}

double Event::score_flops(const ModelConfig& config, const InputLaw& law) const {
  return forward_flops(config, law.facts().max_length);
}

// A pass from the part's first position on, and all logits. The event's own parts change what is after the input.
double Event::change_flops(const ModelConfig& config, const InputLaw& law, std::size_t part) const {
  const std::size_t length = law.facts().max_length;
  const std::size_t first = part < law.facts().n_parts ? law.first_position(part) : length - 1;
  return rescoring_flops(config, length, first) + 2.0 * static_cast<double>(config.d_model * config.d_vocab);
}

AnswerText Event::answer_text(std::span<const TokenId>, std::span<const TokenId>) const { return {}; }

std::vector<std::uint64_t> sample_numbers(const Event& event, const InputLaw& law, std::uint64_t seed,
                                          std::uint64_t first, std::size_t n) {
  const std::size_t n_parts = event.n_parts(), before = law.facts().n_parts;
  std::vector<std::uint64_t> numbers(n * n_parts);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t part = 0; part < n_parts; ++part)
      numbers[i * n_parts + part] =
          uniform64({seed, Stream::kInputs}, first + i, static_cast<std::uint32_t>(before + part));
  return numbers;
}

}  // namespace deeptail
