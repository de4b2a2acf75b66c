// Orders of methods and of settings, as Markdown.
#pragma once

#include <string>

#include "deeptail/report.h"

namespace deeptail {

// For each model and loss, the methods from the lowest mean loss to the highest.
std::string order_table(const Report& report);
// For methods with swept settings ("ga-amls/mala/student_t/900"), how often one value of a setting beats
// another; "" where there are none.
std::string settings_table(const Report& report);

}  // namespace deeptail
