// Numbers of the page's data: few digits, since the page shows three and holds tens of thousands.
#pragma once

#include <cmath>

#include "core/json.h"
#include "deeptail/report.h"

namespace deeptail {

using PageJson = OrderedJson;

inline PageJson rounded(double value, int digits) {
  if (!std::isfinite(value)) return nullptr;
  const double scale = std::pow(10.0, digits);
  return std::round(value * scale) / scale;
}
// An infinite loss is "inf"; what else is not finite is null.
inline PageJson significant(double value, int digits = 6) {
  if (std::isinf(value) && value > 0) return "inf";
  if (!std::isfinite(value)) return nullptr;
  if (value == 0.0) return 0;
  return rounded(value, digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value)))));
}
inline PageJson log10_of(double log_p) {
  constexpr double kPerLn10 = 0.43429448190325182765;
  return rounded(log_p * kPerLn10, 4);
}

// The estimates of a run as "targets", "items", "statuses" and "warnings".
void add_page_items(const Report& report, const Run& run, PageJson& out);
// Triggers, levels and commands of as many of them as the page has room for, as "details".
void add_page_details(const Report& report, const Run& run, const ItemDetails& details, PageJson& out);

}  // namespace deeptail
