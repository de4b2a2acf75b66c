// Which losses differ by more than the choice of targets explains.
#pragma once

#include <optional>

#include "report/score.h"

namespace deeptail {

// Of losses per target, a minus b over the targets of both; nothing where fewer than two are common, since
// one target says nothing about others. The seed is fixed, so that a page can be made again.
std::optional<Difference> difference_of(const TargetLosses& a, const TargetLosses& b, ThreadPool& pool);

// All settings of a pair against each other, or where these would be too many, those that figures show at
// first.
std::vector<Difference> setting_differences(std::span<const RunItem* const> items, const Report& report,
                                            ThreadPool& pool);

}  // namespace deeptail
