// Prompts that the command line was given, as laws.
#include <filesystem>

#include "core/sha256.h"
#include "inputs/prompt_pool.h"
#include "inputs/weighted_texts.h"

namespace deeptail {

namespace {

std::unique_ptr<InputLaw> pool_of_texts(const WeightedTexts& texts, const LawSubject& subject, const Bos& bos,
                                        const std::string& where, LawFacts facts) {
  if (!subject.tokenizer)
    throw InputError("{}: prompts are text, and model {} has no tokenizer", where, subject.model_name);
  const LawReader reader("", &subject);
  std::vector<std::vector<TokenId>> prompts;
  for (std::size_t i = 0; i < texts.texts.size(); ++i)
    prompts.push_back(reader.tokens_of(texts.texts[i], bos, fmt::format("{}: prompt {}", where, i + 1)));
  facts.d_vocab = subject.d_vocab;
  facts.tokenizer_sha256 = subject.tokenizer->sha256;
  facts.sha256 = sha256_hex(fmt::format("{}\n{}\n{} {}\n{}", facts.kind, facts.tokenizer_sha256,
                                        static_cast<int>(bos.kind), bos.id, facts.sha256));
  return std::make_unique<PromptPool>(std::move(facts), std::move(prompts),
                                      choice_of(texts.texts.size(), texts.weights, where));
}

// The keys of the first line say which are meant.
WeightedTexts texts_of_jsonl(std::string_view text, const std::string& where) {
  const Json first = parse_json(text.substr(0, text.find('\n')), fmt::format("{}: line 1", where));
  const JsonNode json(first, where);
  const bool has_prompt = json.has("prompt");
  if (!has_prompt && !json.has("text"))
    throw InputError("{}: line 1: expected the key \"prompt\" or \"text\"", where);
  return read_jsonl(text, where, has_prompt ? "prompt" : "text", json.has("weight") ? "weight" : "");
}

}  // namespace

std::unique_ptr<InputLaw> law_of_prompt(std::string_view text, const LawSubject& subject, const Bos& bos) {
  LawFacts facts{.name = "prompt", .sha256 = sha256_hex(text), .kind = "constant"};
  return pool_of_texts({.texts = {std::string(text)}}, subject, bos, "the prompt", std::move(facts));
}

std::unique_ptr<InputLaw> law_of_prompts(const std::string& path, const LawSubject& subject, const Bos& bos) {
  const InputFile file(path);
  const bool is_jsonl = path.ends_with(".jsonl");
  const WeightedTexts texts = is_jsonl ? texts_of_jsonl(file.text(), path) : read_lines(file.text(), path);
  LawFacts facts{.name = std::filesystem::path(path).filename().string(),
                 .sha256 = sha256_hex(file.bytes()),
                 .kind = "pool"};
  return pool_of_texts(texts, subject, bos, path, std::move(facts));
}

}  // namespace deeptail
