// How fast a model is here: measured, in a fraction of a second.
#pragma once

#include <string>

#include "deeptail/model.h"

namespace deeptail::cli {

// Forward passes of so many tokens a second, on all threads.
double passes_per_second(const Transformer& model, std::size_t length, ThreadPool& pool);

// "8 minutes"
std::string duration_text(double seconds);

}  // namespace deeptail::cli
