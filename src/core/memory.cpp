#include "core/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "deeptail/core.h"

namespace deeptail {

namespace {
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0, kMiB = 1024.0 * 1024.0;
}

double memory_limit() {
  double memory =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  rlimit own{};
  if (::getrlimit(RLIMIT_AS, &own) == 0 && own.rlim_cur != RLIM_INFINITY)
    memory = std::min(memory, static_cast<double>(own.rlim_cur));
  return 0.5 * memory;
}

std::string bytes_text(double bytes) {
  if (bytes < kGiB) return fmt::format("{:.0f} MiB", bytes / kMiB);
  return fmt::format("{:.{}f} GiB", bytes / kGiB, bytes < 100.0 * kGiB ? 1 : 0);
}

void check_memory(std::string_view what, double bytes, std::string_view advice) {
  const double limit = memory_limit();
  if (bytes > limit)
    throw InputError("{} would take {} of memory: expected at most half of what there is, {}; {}", what,
                     bytes_text(bytes), bytes_text(limit), advice);
}

}  // namespace deeptail
