#include "core/data_places.h"

#include <cstdlib>

namespace deeptail {

namespace fs = std::filesystem;

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
  return places;
}

}  // namespace deeptail
