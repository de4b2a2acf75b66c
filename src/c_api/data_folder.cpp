// The zoo lies where the library does: in the Python package, under the prefix that it is installed in, or above the build
// folder.
#include <dlfcn.h>

#include <filesystem>

#include "deeptail/c_api.h"
#include "deeptail/core.h"

namespace deeptail::c_api {

namespace {

namespace fs = std::filesystem;

bool add_folders_beside_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&dt_version), &info) == 0 || info.dli_fname == nullptr)
    return false;
  std::error_code error;
  const fs::path folder = fs::canonical(info.dli_fname, error).parent_path();
  if (error) return false;
  for (const char* place : {"../data", "../share/deeptail", "../../share/deeptail", ".."})
    if (const fs::path found = folder / place; fs::is_directory(found / "models", error)) {
      add_data_folder(found.string());
      return true;
    }
  return false;
}

[[maybe_unused]] const bool folders_added = add_folders_beside_library();

}  // namespace

}  // namespace deeptail::c_api
