// Tables of errors, as files.
#pragma once

#include "deeptail/report.h"

namespace deeptail {

// errors.csv, .md, .tex: log10 of estimate over truth by model and setting; answered.csv, .md: losses of the
// targets that no method answers with zero.
std::vector<TableFile> error_tables(const Report& report);

}  // namespace deeptail
