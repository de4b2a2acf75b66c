#include "inputs/joint_tables.h"

#include <algorithm>

namespace deeptail {

JointTables::JointTables(Distribution dist, TupleTable tuple)
    : dist_(std::move(dist)),
      tuple_(std::move(tuple)),
      facts_{.name = dist_.name,
             .sha256 = dist_.sha256,
             .d_vocab = dist_.d_vocab,
             .tokenizer_sha256 = dist_.tokenizer_sha256,
             .n_parts = dist_.length(),
             .max_length = dist_.length()} {}

bool JointTables::follows(std::size_t position) const {
  const auto& of = tuple_.positions;
  return position != key() && std::binary_search(of.begin(), of.end(), position);
}

std::vector<std::size_t> JointTables::free_parts() const {
  std::vector<std::size_t> free;
  for (std::size_t position = 0; position < dist_.length(); ++position)
    if (position == key() || (!follows(position) && dist_.table(position).size() > 1)) free.push_back(position);
  return free;
}

std::uint32_t JointTables::write_tuple(std::uint64_t number, std::span<TokenId> input) const {
  const auto tokens = tuple_.tuple(static_cast<std::size_t>(tuple_.chances.draw(number)));
  std::uint32_t first = kUnchanged;
  for (std::size_t k = tuple_.width(); k-- > 0;) {
    TokenId& at = input[tuple_.positions[k]];
    if (at != tokens[k]) first = static_cast<std::uint32_t>(tuple_.positions[k]);
    at = tokens[k];
  }
  return first;
}

void JointTables::make(std::span<const std::uint64_t> parts, Inputs& out, ThreadPool& pool) const {
  const std::size_t length = dist_.length(), n = parts.size() / length, block_size = 256;
  out.resize(n, length);
  std::fill(out.lengths.begin(), out.lengths.end(), static_cast<std::uint32_t>(length));
  pool.for_each_block((n + block_size - 1) / block_size, [&](std::size_t block, std::size_t) {
    for (std::size_t i = block * block_size; i < std::min(n, (block + 1) * block_size); ++i) {
      const auto numbers = parts.subspan(i * length, length);
      const auto row = out.row(i);
      for (std::size_t position = 0; position < length; ++position)
        row[position] = dist_.table(position).draw(numbers[position]);
      write_tuple(numbers[key()], row);
    }
  });
}

void JointTables::redraw(std::span<const Redraw> redraws, std::span<std::uint64_t> parts, Inputs& inputs,
                         std::span<std::uint32_t> first_changed, ThreadPool&) const {
  std::fill(first_changed.begin(), first_changed.end(), kUnchanged);
  for (const Redraw& r : redraws) {
    parts[r.input * dist_.length() + r.part] = r.number;
    if (follows(r.part)) continue;
    std::uint32_t changed = kUnchanged;
    if (r.part == key()) {
      changed = write_tuple(r.number, inputs.row(r.input));
    } else {
      TokenId& at = inputs.row(r.input)[r.part];
      const TokenId token = dist_.table(r.part).draw(r.number);
      if (token != at) changed = r.part;
      at = token;
    }
    first_changed[r.input] = std::min(first_changed[r.input], changed);
  }
}

}  // namespace deeptail
