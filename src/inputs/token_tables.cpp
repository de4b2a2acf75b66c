#include <algorithm>

#include "deeptail/law.h"

namespace deeptail {

TokenTables::TokenTables(Distribution dist)
    : dist_(std::move(dist)),
      facts_{.name = dist_.name,
             .sha256 = dist_.sha256,
             .d_vocab = dist_.d_vocab,
             .tokenizer_sha256 = dist_.tokenizer_sha256,
             .n_parts = dist_.length(),
             .max_length = dist_.length()} {}

void TokenTables::make(std::span<const std::uint64_t> parts, Inputs& out, ThreadPool& pool) const {
  const std::size_t length = dist_.length(), n = parts.size() / length, block_size = 256;
  out.resize(n, length);
  std::fill(out.lengths.begin(), out.lengths.end(), static_cast<std::uint32_t>(length));
  pool.for_each_block((n + block_size - 1) / block_size, [&](std::size_t block, std::size_t) {
    const std::size_t end = std::min(n, (block + 1) * block_size) * length;
    for (std::size_t at = block * block_size * length; at < end; at += length)
      for (std::size_t position = 0; position < length; ++position)
        out.tokens[at + position] = dist_.table(position).draw(parts[at + position]);
  });
}

void TokenTables::redraw(std::span<const Redraw> redraws, std::span<std::uint64_t> parts, Inputs& inputs,
                         std::span<std::uint32_t> first_changed, ThreadPool&) const {
  std::fill(first_changed.begin(), first_changed.end(), kUnchanged);
  for (const Redraw& r : redraws) {
    const std::size_t at = r.input * dist_.length() + r.part;
    parts[at] = r.number;
    const TokenId token = dist_.table(r.part).draw(r.number);
    if (token == inputs.tokens[at]) continue;
    inputs.tokens[at] = token;
    first_changed[r.input] = std::min(first_changed[r.input], r.part);
  }
}

}  // namespace deeptail
