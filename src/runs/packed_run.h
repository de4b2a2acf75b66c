// A run as one small file: gzip of run.json in one line, then what a shard holds, without what figures and
// tables do not need (inputs that trigger, levels). Wherever a run's folder is read, so is this.
#pragma once

#include <string>
#include <string_view>

#include "runs/export_run.h"

namespace deeptail {

bool is_packed_run(const std::string& path);

std::string packed_run(const RunSnapshot& snapshot);

struct PackedText {
  std::string header, shard;
};
// Throws InputError, beginning with `where`, for what is not a packed run.
PackedText unpack_run(std::string_view bytes, std::string_view where);

}  // namespace deeptail
