// How GoogleTest shows JSON: through core/json.h, so that no test compiles the library's writer again.
#pragma once

#include <ostream>

#include "core/json.h"

namespace nlohmann {

inline void PrintTo(const json& document, std::ostream* out) { *out << deeptail::json_text(document); }

}  // namespace nlohmann
