// What an estimate will take, told before it starts where that is long.
#pragma once

#include "deeptail/methods.h"

namespace deeptail::cli {

// "a budget of 1.4e4 forward passes (7.1e9 flops each) takes about 8 minutes here, ..."; "" where it is soon done, or
// where the method's work is not counted in passes.
std::string forecast_text(const Method& method, const Question& question, std::size_t n_questions,
                          ThreadPool& pool);

}  // namespace deeptail::cli
