// What shared draws say about one token, as an Estimate.
#pragma once

#include "deeptail/estimators.h"
#include "estimators/vocabulary/shared_draws.h"

namespace deeptail {

// Counted in draws from the prior alone.
Estimate counted_row(TokenId token, std::uint64_t count, std::uint64_t samples);
// By weights. draws: of all laws; batches: that they were dealt to. The tally has hits.
Estimate weighted_row(TokenId token, const TokenTally& tally, std::uint64_t draws, std::size_t batches);

// The part of a target's weight in kinds of inputs (by their tokens at the last two free positions) that one batch alone
// saw: on average at least what all of them miss (docs/tokensplit.md).
double unseen_part(std::span<const SharedHit> hits);

}  // namespace deeptail
