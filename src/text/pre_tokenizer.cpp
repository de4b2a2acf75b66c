#include "text/pre_tokenizer.h"

#include "text/normalizer.h"

namespace deeptail {

const std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

PieceFinder::PieceFinder(const PreTokenizer& pre_tokenizer)
    : pre_tokenizer_(&pre_tokenizer), rewritten_(pre_tokenizer.steps.size()) {
  for (const PreTokenizerStep& step : pre_tokenizer.steps) {
    matchers_.emplace_back();
    if (step.split) matchers_.back().emplace(step.split->regex, clock_);
  }
}

std::string_view PieceFinder::rewritten(const PreTokenizerStep& step, std::string_view text, bool at_start,
                                        std::string& storage) {
  if (!step.space.empty() && text.find(' ') != std::string_view::npos) {
    storage = replace_all(text, " ", step.space, rewritten_limit(text.size()));
    text = storage;
  }
  if (step.prefix.empty() || text.starts_with(step.prefix) || (step.prefix_at_start_only && !at_start))
    return text;
  storage = step.prefix + std::string(text);
  return storage;
}

}  // namespace deeptail
