// The only file that knows the commit, so that a new one compiles this file alone.
#include "cli/build_info.h"

#include <fmt/format.h>

#include "deeptail/core.h"

namespace deeptail::cli {

std::string version_text() {
  return fmt::format("deeptail {} (commit {}, {}, {})", kVersion, DEEPTAIL_COMMIT, DEEPTAIL_COMPILER,
                     DEEPTAIL_CUDA_TEXT);
}

}  // namespace deeptail::cli
