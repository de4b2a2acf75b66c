// How far estimates are from their truths, and losses of what is not zero.
#pragma once

#include <span>

#include "deeptail/report.h"

namespace deeptail {

// By model and setting, in their order; settings without a scored estimate are left out.
std::vector<ErrorSummary> error_summaries(std::span<const RunItem* const> items, const Report& report);
// By model, of the settings that figures show: report's headlines and errors must be known.
std::vector<AnsweredLosses> answered_losses(std::span<const RunItem* const> items, const Report& report);

}  // namespace deeptail
