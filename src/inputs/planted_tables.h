// Independent positions in which a token, two or three are planted: drawn together, from a list.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "deeptail/law.h"

namespace deeptail {

inline constexpr TokenId kNothing = -1;

struct PlantedToken {
  std::uint32_t position = 0;
  TokenId token = kNothing;
  friend auto operator<=>(const PlantedToken&, const PlantedToken&) = default;
};

// What is written over the tokens of an input: one to three tokens, each at a position of its own.
class Plant {
 public:
  static constexpr std::size_t kMost = 3;
  Plant() = default;
  Plant(std::initializer_list<PlantedToken> tokens) : Plant(std::span(tokens.begin(), tokens.size())) {}
  explicit Plant(std::span<const PlantedToken> tokens);
  std::span<const PlantedToken> tokens() const { return std::span(tokens_).first(size_); }  // by position
  void write(std::span<TokenId> input) const {
    for (const PlantedToken& t : tokens()) input[t.position] = t.token;
  }
  friend auto operator<=>(const Plant&, const Plant&) = default;

 private:
  std::array<PlantedToken, kMost> tokens_ = {};
  std::size_t size_ = 0;
};

struct PlantList {
  std::vector<Plant> plants;  // distinct
  TokenTable chances;         // of the numbers [0, plants), in place of token ids
  std::size_t size() const { return plants.size(); }
};

// Part i < length is the number that position i is drawn with, seen where nothing is planted; the part after
// them chooses the plant.
class PlantedTables final : public InputLaw {
 public:
  PlantedTables(Distribution dist, PlantList list);
  const LawFacts& facts() const override { return facts_; }
  void make(std::span<const std::uint64_t> parts, Inputs& out, ThreadPool& pool) const override;
  void redraw(std::span<const Redraw> redraws, std::span<std::uint64_t> parts, Inputs& inputs,
              std::span<std::uint32_t> first_changed, ThreadPool& pool) const override;
  std::size_t first_position(std::size_t part) const override;
  std::vector<std::size_t> free_parts() const override;

 private:
  std::size_t length() const { return dist_.length(); }
  const Plant& plant_of(std::span<const std::uint64_t> numbers) const {
    return list_.plants[static_cast<std::size_t>(list_.chances.draw(numbers[length()]))];
  }
  // numbers: [length + 1]. The token there, the plant's where it covers the position.
  TokenId token_at(std::size_t position, std::span<const std::uint64_t> numbers) const;

  Distribution dist_;
  PlantList list_;
  LawFacts facts_;
};

}  // namespace deeptail
