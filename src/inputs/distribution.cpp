// Sampling, and whether a model can read the samples.
#include <algorithm>

#include "core/random.h"
#include "deeptail/inputs.h"
#include "inputs/distribution_json.h"

namespace deeptail {

std::vector<std::vector<TokenId>> Distribution::support() const {
  std::vector<std::vector<TokenId>> ids;
  for (std::size_t position = 0; position < length(); ++position) ids.push_back(table(position).ids());
  return ids;
}

double Distribution::log_probability(std::span<const TokenId> tokens) const {
  double sum = 0.0;
  for (std::size_t position = 0; position < length(); ++position)
    sum += table(position).log_probability(tokens[position]);
  return sum;
}

std::vector<std::size_t> free_positions(const Distribution& dist) {
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < dist.length(); ++i)
    if (dist.table(i).size() > 1) free.push_back(i);
  return free;
}

void check_varies(const Distribution& dist) {
  if (free_positions(dist).empty())
    throw InputError("distribution {}: every position holds one token, so there is nothing to sample",
                     printable(dist.name));
}

void sample(const Distribution& dist, std::uint64_t seed, std::uint64_t index, std::span<TokenId> tokens) {
  const RngKey key{seed, Stream::kInputs};
  for (std::size_t position = 0; position < dist.length(); position += 2) {
    const auto u = uniform64_pair(key, index, static_cast<std::uint32_t>(position / 2));
    tokens[position] = dist.table(position).draw(u[0]);
    if (position + 1 < dist.length()) tokens[position + 1] = dist.table(position + 1).draw(u[1]);
  }
}

void sample_range(const Distribution& dist, std::uint64_t seed, std::uint64_t first, ThreadPool& pool,
                  std::span<TokenId> tokens) {
  const std::size_t length = dist.length(), n = tokens.size() / length, block_size = 256;
  pool.for_each_block((n + block_size - 1) / block_size, [&](std::size_t block, std::size_t) {
    for (std::size_t i = block * block_size; i < std::min(n, (block + 1) * block_size); ++i)
      sample(dist, seed, first + i, tokens.subspan(i * length, length));
  });
}

void check_fits(const Distribution& dist, const ModelConfig& config, std::string_view tokenizer_sha256) {
  if (dist.length() > config.n_ctx)
    throw InputError("distribution {}: {} positions, but model {} reads at most n_ctx = {}",
                     printable(dist.name), dist.length(), config.model_name, config.n_ctx);
  if (dist.d_vocab != config.d_vocab)  // its ids may then mean other tokens, even where they exist
    throw InputError("distribution {}: made for a vocabulary of {} tokens, but model {} has {}",
                     printable(dist.name), dist.d_vocab, config.model_name, config.d_vocab);
  check_tokenizer(fmt::format("distribution {}", printable(dist.name)), dist.tokenizer_sha256, config,
                  tokenizer_sha256);
}

void check_tokenizer(std::string_view what, std::string_view ids_sha256, const ModelConfig& config,
                     std::string_view model_sha256) {
  if (!ids_sha256.empty() && !model_sha256.empty() && ids_sha256 != model_sha256)
    throw InputError(
        "{}: its ids belong to another tokenizer (SHA-256 {:.12}...) than those of model {} ({:.12}...)",
        what, ids_sha256, config.model_name, model_sha256);
}

}  // namespace deeptail
