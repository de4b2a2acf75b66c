#include "inputs/planted_tables.h"

#include <algorithm>

namespace deeptail {

Plant::Plant(std::span<const PlantedToken> tokens) : size_(tokens.size()) {
  std::copy(tokens.begin(), tokens.end(), tokens_.begin());
  std::sort(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(size_));
}

PlantedTables::PlantedTables(Distribution dist, PlantList list)
    : dist_(std::move(dist)),
      list_(std::move(list)),
      facts_{.name = dist_.name,
             .sha256 = dist_.sha256,
             .d_vocab = dist_.d_vocab,
             .tokenizer_sha256 = dist_.tokenizer_sha256,
             .n_parts = dist_.length() + 1,
             .max_length = dist_.length()} {}

std::vector<std::size_t> PlantedTables::free_parts() const {
  std::vector<std::size_t> free = free_positions(dist_);
  free.push_back(length());
  return free;
}

std::size_t PlantedTables::first_position(std::size_t part) const {
  if (part < length()) return part;
  auto first = static_cast<std::uint32_t>(length());
  for (const Plant& plant : list_.plants) first = std::min(first, plant.tokens().front().position);
  return first;
}

TokenId PlantedTables::token_at(std::size_t position, std::span<const std::uint64_t> numbers) const {
  for (const PlantedToken& t : plant_of(numbers).tokens())
    if (t.position == position) return t.token;
  return dist_.table(position).draw(numbers[position]);
}

void PlantedTables::make(std::span<const std::uint64_t> parts, Inputs& out, ThreadPool& pool) const {
  const std::size_t n_parts = length() + 1, n = parts.size() / n_parts, block_size = 256;
  out.resize(n, length());
  std::fill(out.lengths.begin(), out.lengths.end(), static_cast<std::uint32_t>(length()));
  pool.for_each_block((n + block_size - 1) / block_size, [&](std::size_t block, std::size_t) {
    for (std::size_t i = block * block_size; i < std::min(n, (block + 1) * block_size); ++i) {
      const auto numbers = parts.subspan(i * n_parts, n_parts);
      for (std::size_t position = 0; position < length(); ++position)
        out.row(i)[position] = token_at(position, numbers);
    }
  });
}

void PlantedTables::redraw(std::span<const Redraw> redraws, std::span<std::uint64_t> parts, Inputs& inputs,
                           std::span<std::uint32_t> first_changed, ThreadPool&) const {
  std::fill(first_changed.begin(), first_changed.end(), kUnchanged);
  for (const Redraw& r : redraws) {
    const auto numbers = parts.subspan(r.input * (length() + 1), length() + 1);
    const auto row = inputs.row(r.input);
    const auto write = [&](std::size_t position) {
      const TokenId token = token_at(position, numbers);
      if (token == row[position]) return;
      row[position] = token;
      first_changed[r.input] = std::min(first_changed[r.input], static_cast<std::uint32_t>(position));
    };
    const Plant before = plant_of(numbers);
    numbers[r.part] = r.number;
    if (r.part < length()) {
      write(r.part);
      continue;
    }
    for (const PlantedToken& t : before.tokens()) write(t.position);
    for (const PlantedToken& t : plant_of(numbers).tokens()) write(t.position);
  }
}

}  // namespace deeptail
