#include "bench/claims.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "deeptail/core.h"

namespace deeptail {

Claims::Claims(const std::string& folder) : path_(folder + "/claims.lock") {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) throw InputError("{}: cannot open for writing: {}", path_, std::strerror(errno));
}

Claims::~Claims() { ::close(fd_); }

bool Claims::lock(std::uint64_t item, int type, bool wait) {
  struct flock range {};
  range.l_type = static_cast<short>(type);
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(item);
  range.l_len = 1;
  while (::fcntl(fd_, wait ? F_OFD_SETLKW : F_OFD_SETLK, &range) != 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EACCES) return false;
    throw InputError("{}: cannot lock: {}; the file system of a run folder must support locks", path_,
                     std::strerror(errno));
  }
  return true;
}

bool Claims::try_claim(std::uint64_t item) { return lock(item, F_WRLCK, false); }
void Claims::wait_for(std::uint64_t item) { lock(item, F_WRLCK, true); }
void Claims::release(std::uint64_t item) { lock(item, F_UNLCK, false); }

}  // namespace deeptail
