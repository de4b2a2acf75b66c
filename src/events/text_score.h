// Scores of finished texts: what is known only when a continuation has ended.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "deeptail/core.h"

namespace deeptail {

// The continuation without the token that ended it.
struct SampledText {
  std::span<const TokenId> prompt, continuation;
};

// At or above 0: the event happened. The same text must get the same score whenever it is asked.
class TextScore {
 public:
  virtual ~TextScore() = default;
  virtual std::string text() const = 0;  // for people
  // out: [texts.size()]. Called by several threads at a time, each with a pool of its own.
  virtual void scores(std::span<const SampledText> texts, std::span<double> out, ThreadPool& pool) const = 0;
  // Of one text of so many tokens, besides sampling it.
  virtual double flops(std::size_t /*n_tokens*/) const { return 0.0; }
};

}  // namespace deeptail
