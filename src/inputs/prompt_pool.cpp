// Pools of prompts: one part chooses which. A constant is a pool of one.
#include <algorithm>

#include "core/sha256.h"
#include "inputs/prompt_pool.h"
#include "inputs/weighted_texts.h"

namespace deeptail {

PromptPool::PromptPool(LawFacts facts, std::vector<std::vector<TokenId>> prompts, TokenTable choice)
    : facts_(std::move(facts)), prompts_(std::move(prompts)), choice_(std::move(choice)) {
  facts_.n_parts = 1;
  std::size_t shortest = prompts_.front().size();
  const std::vector<TokenId>& first = prompts_.front();
  first_difference_ = first.size();
  for (const auto& prompt : prompts_) {
    shortest = std::min(shortest, prompt.size());
    facts_.max_length = std::max(facts_.max_length, prompt.size());
    varies_ = varies_ || prompt != first;
    const auto differs = std::mismatch(prompt.begin(), prompt.end(), first.begin(), first.end()).first;
    first_difference_ = std::min(first_difference_, static_cast<std::size_t>(differs - prompt.begin()));
  }
  facts_.summary = prompts_.size() == 1 ? fmt::format("one prompt of {} tokens", facts_.max_length)
                                        : fmt::format("{} prompts of {} to {} tokens", prompts_.size(),
                                                      shortest, facts_.max_length);
}

void PromptPool::make(std::span<const std::uint64_t> parts, Inputs& out, ThreadPool& pool) const {
  const std::size_t n = parts.size(), block_size = 256;
  out.resize(n, facts_.max_length);
  pool.for_each_block((n + block_size - 1) / block_size, [&](std::size_t block, std::size_t) {
    for (std::size_t i = block * block_size; i < std::min(n, (block + 1) * block_size); ++i) {
      const auto& prompt = prompts_[static_cast<std::size_t>(choice_.draw(parts[i]))];
      const auto row = out.row(i);
      std::fill(std::copy(prompt.begin(), prompt.end(), row.begin()), row.end(), 0);
      out.lengths[i] = static_cast<std::uint32_t>(prompt.size());
    }
  });
}

std::vector<std::size_t> PromptPool::free_parts() const {
  return varies_ ? std::vector<std::size_t>{0} : std::vector<std::size_t>{};
}

namespace {

std::unique_ptr<InputLaw> pool_of(LawReader& reader, const JsonNode& json, const WeightedTexts& texts,
                                  std::string_view kind) {
  reader.tokenizer(json);
  const Bos bos = read_law_bos(json, reader.subject(json).d_vocab);
  std::vector<std::vector<TokenId>> prompts;
  for (std::size_t i = 0; i < texts.texts.size(); ++i)
    prompts.push_back(
        reader.tokens_of(texts.texts[i], bos, fmt::format("{}: prompt {}", json.where(), i + 1)));
  return std::make_unique<PromptPool>(reader.facts(json, kind), std::move(prompts),
                                      choice_of(texts.texts.size(), texts.weights, json.where()));
}

}  // namespace

std::unique_ptr<InputLaw> read_pool(LawReader& reader, const JsonNode& json) {
  expect_keys(json, {"format", "name", "description", "kind", "bos", "prompts", "file", "field", "weight"});
  if (json.has("prompts") == json.has("file"))
    throw InputError("{}: a pool has either \"prompts\" or a \"file\" of them", json.where());
  return pool_of(reader, json,
                 json.has("file") ? read_texts_file(reader, json) : read_list(json.at("prompts")), "pool");
}

std::unique_ptr<InputLaw> read_constant(LawReader& reader, const JsonNode& json) {
  expect_keys(json, {"format", "name", "description", "kind", "bos", "prompt"});
  return pool_of(reader, json, {.texts = {json.at("prompt").text()}}, "constant");
}

}  // namespace deeptail
