// What this binary was built from and with.
#pragma once

#include <string>

namespace deeptail::cli {

// "deeptail 0.1.0 (commit 0cc81a8, Clang 14.0.6, without CUDA)"
std::string version_text();

}  // namespace deeptail::cli
