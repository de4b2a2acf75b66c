// What qld and qld-arc share: the normalised cloud, whitened, and the half-spaces in which a token wins.
#pragma once

#include "deeptail/qld.h"
#include "estimators/shortest_vector.h"

namespace deeptail {

struct Cloud {
  std::size_t n = 0, d = 0;
  AlignedVector<float> normed;  // [n, d], as W_U takes them
  Moments moments;

  ConstRows rows() const { return {normed.data(), d}; }
};
Cloud make_cloud(const Head& head, const Activations& activations, ThreadPool& pool);

// Where token t beats all tokens outside the target, for x = mean + L u: half-spaces of u.
HalfSpaces winning_region(const Head& head, const Whitening& whitening, TokenId t, const Target& target,
                          ThreadPool& pool);

// L u, the change of x per unit along the whitened direction u: [d].
std::vector<double> times_l(const Whitening& whitening, std::span<const double> u);
// The change of every logit per unit along direction x: [d_vocab].
std::vector<double> logit_slopes(const Head& head, std::span<const double> x);

}  // namespace deeptail
