#include "cli/streams.h"

#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

namespace deeptail::cli {

void prepare_streams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) == -1) [[maybe_unused]]
      const int lowest = ::open("/dev/null", O_RDWR);  // the lowest free number is fd
  std::signal(SIGXFSZ, SIG_IGN);
}

void flush_output() {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed_before) return;
  throw std::system_error(errno != 0 ? errno : EIO, std::generic_category());
}

}  // namespace deeptail::cli
