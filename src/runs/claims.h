// Who works on which item, when several processes share a run folder.
//
// Byte k of claims.lock is locked, while someone works on item k (core/file_lock.h).
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "core/file_lock.h"

namespace deeptail {

class Claims {
 public:
  explicit Claims(const std::string& folder) : file_(folder + "/claims.lock") {}

  bool try_claim(std::uint64_t item) { return claim(item, false); }
  void release(std::uint64_t item);

  static constexpr std::uint64_t kHeader = std::uint64_t{1} << 40;  // beyond all items: who writes run.json
  void wait_for(std::uint64_t item) { claim(item, true); }

 private:
  bool claim(std::uint64_t item, bool wait);

  LockFile file_;
  std::set<std::uint64_t> held_ = {};
};

}  // namespace deeptail
