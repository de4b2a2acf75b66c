#include "core/data_places.h"

#include <cstdlib>
#include <utility>

#include "deeptail/core.h"

namespace deeptail {

namespace fs = std::filesystem;

namespace {

// A function's own, so that it is there before anything else is initialised.
std::vector<fs::path>& added_folders() {
  static std::vector<fs::path> folders;
  return folders;
}

}  // namespace

void add_data_folder(std::string folder) {
  added_folders().push_back(fs::path(std::move(folder)).lexically_normal());
}

std::vector<fs::path> data_places(std::string_view kind) {
  std::vector<fs::path> places;
  if (const char* home = std::getenv("DEEPTAIL_HOME"); home != nullptr)
    places.push_back(fs::path(home) / kind);
  places.emplace_back(kind);
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    places.push_back(program.parent_path().parent_path() / kind);
    places.push_back(program.parent_path().parent_path() / "share" / "deeptail" / kind);
  }
  for (const fs::path& folder : added_folders()) places.push_back(folder / kind);
  return places;
}

}  // namespace deeptail
