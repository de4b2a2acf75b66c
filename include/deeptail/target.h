// Which next tokens make up an event. Apart from event.h, since margins and gradients, which are the model's,
// are taken with respect to it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "deeptail/core.h"

namespace [[gnu::visibility("default")]] deeptail {

struct Head;

// A set of token ids, ascending and distinct.
class Target {
 public:
  Target(std::vector<TokenId> ids, const Head& head);
  const std::vector<TokenId>& ids() const { return ids_; }
  bool contains(TokenId id) const { return std::binary_search(ids_.begin(), ids_.end(), id); }
  std::span<const TokenId> in_range(std::size_t first, std::size_t end) const;  // those in [first, end)

 private:
  std::vector<TokenId> ids_;
};

}  // namespace deeptail
