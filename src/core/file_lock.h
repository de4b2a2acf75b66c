// Locks between processes. They belong to the open file (Linux "open file description" locks), so the kernel
// drops them when a process ends, however it ends: there is nothing to clean up and no time-out to guess. NFS
// and the usual cluster file systems carry them between machines.
#pragma once

#include <cstdint>
#include <string>

namespace deeptail {

// A file that stays empty: its bytes are locked one by one, and locking beyond the end is allowed.
class LockFile {
 public:
  explicit LockFile(std::string path);  // made where it is missing; throws InputError when it cannot be
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  enum class Result { kLocked, kHeldByOther, kNoLocks };
  Result lock(std::uint64_t byte, bool wait = false);  // kNoLocks: the file system has none
  void unlock(std::uint64_t byte);

  // Whether others who open the path get this file: it may have been deleted.
  bool is_there() const;
  void reopen();  // all locks are gone then
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
};

// Held while a process works on the file `out`: out + ".lock", which is gone at the end. Throws InputError
// when another process has it. A file system without locks is taken as it is.
class WorkLock {
 public:
  explicit WorkLock(const std::string& out);
  ~WorkLock();

 private:
  LockFile file_;
};

}  // namespace deeptail
