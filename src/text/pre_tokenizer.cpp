#include "text/pre_tokenizer.h"

namespace deeptail {

const std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

PieceFinder::PieceFinder(const PreTokenizer& pre_tokenizer) : pre_tokenizer_(&pre_tokenizer) {
  for (const Split& split : pre_tokenizer.splits) matchers_.emplace_back(split.regex, clock_);
  if (pre_tokenizer.last) matchers_.emplace_back(pre_tokenizer.last->regex, clock_);
}

}  // namespace deeptail
