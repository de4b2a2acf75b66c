// Independent positions, but for a few that are drawn together, from a list of tuples.
#pragma once

#include <span>
#include <vector>

#include "deeptail/law.h"

namespace deeptail {

// Tokens of several positions at once, with their joint probabilities.
struct TupleTable {
  std::vector<std::size_t> positions;  // [width], ascending
  std::vector<TokenId> tokens;         // [size, width]
  TokenTable chances;                  // of the numbers [0, size), in place of token ids

  std::size_t width() const { return positions.size(); }
  std::size_t size() const { return chances.size(); }
  std::span<const TokenId> tuple(std::size_t i) const {
    return std::span(tokens).subspan(i * width(), width());
  }
};

// Part i is the number that position i is drawn with. The last of the tuple's positions stands for all of
// them: the numbers of the others change nothing.
class JointTables final : public InputLaw {
 public:
  JointTables(Distribution dist, TupleTable tuple);
  const LawFacts& facts() const override { return facts_; }
  void make(std::span<const std::uint64_t> parts, Inputs& out, ThreadPool& pool) const override;
  void redraw(std::span<const Redraw> redraws, std::span<std::uint64_t> parts, Inputs& inputs,
              std::span<std::uint32_t> first_changed, ThreadPool& pool) const override;
  std::size_t first_position(std::size_t part) const override {
    return part == key() ? tuple_.positions.front() : part;
  }
  std::vector<std::size_t> free_parts() const override;

  const Distribution& others() const { return dist_; }  // of the positions that are not the tuple's
  const TupleTable& tuple() const { return tuple_; }

 private:
  std::size_t key() const { return tuple_.positions.back(); }
  bool follows(std::size_t position) const;  // of the tuple, and not its key
  // Writes the tuple of a number; returns the first position that changed, or kUnchanged.
  std::uint32_t write_tuple(std::uint64_t number, std::span<TokenId> input) const;

  Distribution dist_;
  TupleTable tuple_;
  LawFacts facts_;
};

}  // namespace deeptail
