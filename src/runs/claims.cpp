#include "runs/claims.h"

#include <cerrno>
#include <cstring>

#include "deeptail/core.h"

namespace deeptail {

bool Claims::claim(std::uint64_t item, bool wait) {
  using Result = LockFile::Result;
  for (;;) {
    const Result result = file_.lock(item, wait);
    if (result == Result::kHeldByOther) return false;
    if (result == Result::kNoLocks)
      throw InputError("{}: cannot lock: {}; the file system of a run folder must support locks",
                       file_.path(), std::strerror(errno));
    if (file_.is_there()) break;
    // Somebody deleted it, and those who came later lock another file: join them.
    file_.reopen();
    for (const std::uint64_t other : held_) file_.lock(other);
  }
  held_.insert(item);
  return true;
}

void Claims::release(std::uint64_t item) {
  file_.unlock(item);
  held_.erase(item);
}

}  // namespace deeptail
