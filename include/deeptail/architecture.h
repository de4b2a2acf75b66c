// What kind of transformer a model is: a value, so that families are data, and a fast path made for one kind
// can compare the whole of it before it takes a model.
#pragma once

#include <cstddef>
#include <vector>

namespace [[gnu::visibility("default")]] deeptail {

struct Architecture {
  enum class Norm { kLayer, kRms };  // kRms: x / sqrt(mean x^2 + eps) w, without a bias
  enum class Positions { kLearned, kRotary };
  // kParallel: x + attention(ln1(x)) + mlp(ln2(x)).
  enum class Residual { kSequential, kParallel };
  // kGelu: by erf; kGeluTanh: by tanh; kSwiGlu: silu(y W_gate) * (y W_in), then W_out.
  enum class Mlp { kGelu, kGeluTanh, kSwiGlu };
  // What scores are multiplied by: 1 / sqrt(d_head); 1; 1 / (sqrt(d_head) (layer + 1)).
  enum class AttentionScale { kByHead, kOne, kByHeadAndLayer };

  Norm norm = Norm::kLayer;
  Positions positions = Positions::kLearned;
  Residual residual = Residual::kSequential;
  Mlp mlp = Mlp::kGelu;
  AttentionScale attention_scale = AttentionScale::kByHead;
  std::size_t kv_groups = 1;  // query heads that share a head of keys and values: head h uses h / kv_groups
  bool qk_norm = false;       // an RMS norm of every head's query and key, before they turn
  bool tied_head = false;     // W_U is W_E transposed

  // Rotary positions: at position t, values i and i + rotary_dims() / 2 of every query and key head turn by
  // the angle t * frequencies[i]. Readers fold base, share of the head and scaling into the frequencies, and
  // put files that turn neighbouring pairs into this order.
  std::vector<double> frequencies = {};
  std::size_t rotary_dims() const { return 2 * frequencies.size(); }

  // Keys that are linear in their input and do not turn with their position let the last block carry its
  // query through W_K (last_block.h).
  bool keys_are_still() const { return positions == Positions::kLearned && !qk_norm; }
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

}  // namespace deeptail
