// Inputs of the event near ones that a run found: every token at the last positions, tried in hits.
//
// A pair of which neither token shows alone is found by a run only if it draws the second token where it holds the
// first. Where an input has the event already, all tokens can be tried: those that raise the margin much lead to it in
// other inputs, too. They only teach; they are no part of an estimate.
#pragma once

#include "estimators/tokensplit/place.h"
#include "estimators/tokensplit/triggers.h"

namespace deeptail {

struct NearHits {
  TriggerPool hits = {};  // with equal parts, which sum to those of what was given
  Work work = {};
};

// place: under the prior. steepness: how much log Pr[margin >= m] falls per unit of m near the event. flops: what it may
// take, about.
template <class Place>
NearHits near_hits(const Place& place, const TriggerPool& found, double steepness, double flops,
                   ThreadPool& pool);

}  // namespace deeptail
