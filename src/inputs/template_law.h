// Templates: text with slots. What is text is joined and tokenised as a whole; tokens are put between.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "inputs/template_slots.h"

namespace deeptail {

// A piece of a template: text, or a slot.
struct TemplatePiece {
  std::string text;
  std::size_t slot = kIsText;
  static constexpr std::size_t kIsText = ~std::size_t{0};
};
struct TemplateText {
  std::vector<TemplatePiece> pieces;
  std::vector<std::string> names;  // of the slots, in the order in which they are first met
};
// {name} is a slot, {{ and }} are braces. Throws InputError, beginning with `where`.
TemplateText parse_template(std::string_view text, const std::string& where);

class TemplateLaw final : public InputLaw {
 public:
  // slots: [names]. bos: the tokens before everything.
  TemplateLaw(LawFacts facts, Tokenizer tokenizer, std::vector<TokenId> bos,
              std::vector<TemplatePiece> pieces, std::vector<std::unique_ptr<TemplateSlot>> slots);

  const LawFacts& facts() const override { return facts_; }
  void make(std::span<const std::uint64_t> parts, Inputs& out, ThreadPool& pool) const override;
  std::size_t first_position(std::size_t part) const override { return first_[part]; }
  std::vector<std::size_t> free_parts() const override { return free_; }

 private:
  struct Slot {
    std::unique_ptr<TemplateSlot> source;
    std::size_t first_part = 0;
  };
  const TemplateSlot& slot_of(std::size_t part) const;
  std::vector<TokenId> tokens_of(std::size_t input, std::span<const SlotValues> values) const;
  void check_made(std::span<const TokenId> tokens) const;
  // Where each part can change an input: exactly, where there are few inputs; else from some of them.
  void look_at_all(ThreadPool& pool);
  void look_at_some(ThreadPool& pool);
  void keep_prefix(const Inputs& inputs);
  double n_inputs() const;

  LawFacts facts_;
  Tokenizer tokenizer_;
  std::vector<TokenId> bos_;
  std::vector<TemplatePiece> pieces_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> first_, free_;  // [n_parts]; parts
  std::vector<TokenId> prefix_;            // what every input is checked to begin with
};

}  // namespace deeptail
