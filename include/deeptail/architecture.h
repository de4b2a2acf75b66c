// What kind of transformer a model is: a value, so that families are data, and a fast path made for one kind
// can compare the whole of it before it takes a model.
#pragma once

#include <cstddef>

namespace [[gnu::visibility("default")]] deeptail {

struct Architecture {
  enum class Norm { kLayer, kRms };
  enum class Positions { kLearned, kRotary };
  enum class Residual { kSequential, kParallel };  // parallel: x + attention(x) + mlp(x)
  enum class Mlp { kGelu, kGeluTanh, kSwiGlu };    // kGelu: by erf

  Norm norm = Norm::kLayer;
  Positions positions = Positions::kLearned;
  Residual residual = Residual::kSequential;
  Mlp mlp = Mlp::kGelu;
  std::size_t kv_groups = 1;  // query heads that share a head of keys and values

  // Keys that do not turn with their position let the last block carry its query through W_K (last_block.h).
  bool keys_are_still() const { return positions == Positions::kLearned; }
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

}  // namespace deeptail
