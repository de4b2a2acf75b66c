#pragma once

#include <vector>

#include "deeptail/law.h"

namespace deeptail {

class PromptPool final : public InputLaw {
 public:
  // prompts: at least one, none of them empty; choice draws an index into them.
  PromptPool(LawFacts facts, std::vector<std::vector<TokenId>> prompts, TokenTable choice);

  const LawFacts& facts() const override { return facts_; }
  void make(std::span<const std::uint64_t> parts, Inputs& out, ThreadPool& pool) const override;
  std::size_t first_position(std::size_t) const override { return first_difference_; }
  std::vector<std::size_t> free_parts() const override;
  const std::vector<std::vector<TokenId>>& prompts() const { return prompts_; }
  const TokenTable& choice() const { return choice_; }  // draws an index of them

 private:
  LawFacts facts_;
  std::vector<std::vector<TokenId>> prompts_;
  TokenTable choice_;
  std::size_t first_difference_ = 0;
  bool varies_ = false;
};

}  // namespace deeptail
