// Who works on which item, when several processes share a run folder.
//
// Byte k of claims.lock is locked, while someone works on item k. The locks belong to the open file (Linux
// "open file description" locks), so the kernel drops them when a process ends, however it ends: there is
// nothing to clean up and no time-out to guess. NFS and the usual cluster file systems carry byte locks
// between machines. The file stays empty, and locking beyond its end is allowed.
#pragma once

#include <cstdint>
#include <string>

namespace deeptail {

class Claims {
 public:
  explicit Claims(const std::string& folder);
  ~Claims();
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;

  bool try_claim(std::uint64_t item);
  void release(std::uint64_t item);

  static constexpr std::uint64_t kHeader = std::uint64_t{1} << 40;  // beyond all items: who writes run.json
  void wait_for(std::uint64_t item);

 private:
  bool lock(std::uint64_t item, int type, bool wait);

  std::string path_;
  int fd_ = -1;
};

}  // namespace deeptail
