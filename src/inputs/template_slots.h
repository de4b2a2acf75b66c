// What stands in a template's slots: texts or tokens, as functions of independent numbers.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "inputs/law_reader.h"

namespace deeptail {

// What a slot holds in each of many inputs: either texts or tokens.
struct SlotValues {
  std::vector<std::string> texts;
  std::vector<std::vector<TokenId>> tokens;
};

class TemplateSlot {
 public:
  virtual ~TemplateSlot() = default;
  virtual bool is_tokens() const { return false; }
  virtual std::size_t n_parts() const { return 1; }
  // How many values a part chooses from, and a number that chooses one of them; 0: not known, or too many to try.
  virtual std::size_t n_values() const = 0;
  virtual std::uint64_t number_of(std::size_t value) const = 0;
  // A number that gives a short value, which lets what follows begin early.
  virtual std::uint64_t short_number() const { return 0; }
  // At most as many tokens, where it stands alone.
  virtual std::size_t most_tokens() const = 0;
  // parts: [n, n_parts].
  virtual void fill(std::span<const std::uint64_t> parts, SlotValues& out, ThreadPool& pool) const = 0;
};

// By its keys: list, file, range, ids, table or law.
std::unique_ptr<TemplateSlot> read_slot(LawReader& reader, const JsonNode& node);

}  // namespace deeptail
