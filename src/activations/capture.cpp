#include <algorithm>

#include "core/memory.h"
#include "deeptail/activations.h"

namespace deeptail {

namespace {

constexpr std::uint64_t kFirstSample = std::uint64_t{1} << 62;
constexpr std::size_t kBatch = 4096;

// The last position that can hold more than one token; the last one when there is none.
std::size_t last_varying_position(const Distribution& dist) {
  for (std::size_t position = dist.length(); position-- > 0;)
    if (dist.table(position).size() > 1) return position;
  return dist.length() - 1;
}

}  // namespace

void CaptureConfig::validate() const {
  if (count == 0) throw InputError("count 0: expected at least one input");
  if (count > std::uint64_t{1} << 40) throw InputError("count {}: expected at most 2^40 inputs", count);
}

double capture_bytes(std::uint64_t count, std::size_t d_model) {
  return static_cast<double>(count) *
         (sizeof(float) * static_cast<double>(d_model) + static_cast<double>(sizeof(TokenId)));
}

Activations capture(const Transformer& model, const Distribution& dist, const CaptureConfig& config,
                    ThreadPool& pool, const Watch& watch) {
  return capture(model, TokenTables(dist), config, pool, watch);
}

Activations capture(const Transformer& model, const InputLaw& law, const CaptureConfig& config,
                    ThreadPool& pool, const Watch& watch) {
  config.validate();
  const std::size_t d = model.config().d_model;
  const Distribution* tables = law.tables();
  check_memory(fmt::format("{} activations of {} numbers", config.count, d), capture_bytes(config.count, d),
               "take a smaller count");
  const auto count = static_cast<std::size_t>(config.count);
  Activations out{.n = count, .d_model = d};
  out.values.resize(count * d);
  if (tables != nullptr) out.last_tokens.resize(count);
  const std::size_t position = tables != nullptr ? last_varying_position(*tables) : 0;
  ResidualRunner runner(model, law, config.seed, pool);
  std::size_t done = 0;
  while (done < count) {
    const std::size_t n = std::min(kBatch, count - done);
    runner.run(kFirstSample + done, n, {out.values.data() + done * d, d});
    if (tables != nullptr)
      for (std::size_t i = 0; i < n; ++i) out.last_tokens[done + i] = runner.input(i)[position];
    done += n;
    if (!goes_on(watch, progress_of(done, count))) break;
  }
  out.n = done;
  out.values.resize(done * d);
  if (tables != nullptr) out.last_tokens.resize(done);
  return out;
}

}  // namespace deeptail
