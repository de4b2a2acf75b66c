// Every input of a small distribution, with its probability, target logit and whether it says the target.
#pragma once

#include <cmath>
#include <map>
#include <vector>

#include "deeptail/inputs.h"
#include "deeptail/model.h"

namespace deeptail {

struct EnumeratedInput {
  std::vector<TokenId> tokens;
  double p = 1.0;      // probability
  double logit = 0.0;  // of the target
  bool event = false;
};

inline std::vector<EnumeratedInput> enumerate(const Transformer& model, const Distribution& dist,
                                              TokenId target) {
  std::vector<EnumeratedInput> inputs(1);
  for (std::size_t position = 0; position < dist.length(); ++position) {
    std::vector<EnumeratedInput> next;
    for (const EnumeratedInput& input : inputs)
      for (std::size_t i = 0; i < dist.table(position).size(); ++i) {
        EnumeratedInput& longer = next.emplace_back(input);
        longer.tokens.push_back(dist.table(position).ids()[i]);
        longer.p *= dist.table(position).probability(i);
      }
    inputs = std::move(next);
  }
  ThreadPool pool(1);
  const std::size_t d = model.config().d_model, v = model.config().d_vocab;
  AlignedVector<float> resid(d), found(v);
  for (EnumeratedInput& input : inputs) {
    final_residuals(model, {input.tokens, dist.length()}, pool, {resid.data(), d});
    logits(model.head(), 1, {resid.data(), d}, pool, {found.data(), v});
    input.logit = found[static_cast<std::size_t>(target)];
    input.event = best_of(v, found.data()).index == static_cast<std::size_t>(target);
  }
  return inputs;
}

}  // namespace deeptail
