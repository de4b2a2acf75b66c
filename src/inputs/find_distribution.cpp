#include <algorithm>
#include <filesystem>

#include "core/data_places.h"
#include "core/nearest.h"
#include "deeptail/inputs.h"

namespace deeptail {

namespace fs = std::filesystem;

std::string find_distribution(const std::string& name_or_path) {
  if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".json")) return name_or_path;
  std::vector<std::string> tried;
  std::error_code error;
  for (const fs::path& place : data_places("distributions")) {
    const fs::path file = place / (name_or_path + ".json");
    if (fs::is_regular_file(file, error)) return file.string();
    tried.push_back(place.string());
  }
  std::vector<std::string> names;
  for (const std::string& file : list_distributions()) names.push_back(fs::path(file).stem().string());
  throw InputError(
      "distribution {}: none of that name in {}; `deeptail dist list` shows what there is, and a path works "
      "too{}",
      name_or_path, fmt::join(tried, ", "), did_you_mean(name_or_path, names));
}

Distribution load_distribution(const std::string& name_or_path) {
  const InputFile file(find_distribution(name_or_path));
  const fs::path folder = fs::path(file.path()).parent_path();
  return parse_distribution(file.text(), file.path(), folder.empty() ? "." : folder.string());
}

std::vector<std::string> list_distributions() {
  std::vector<std::string> found;
  std::vector<fs::path> seen;
  std::error_code error;
  for (const fs::path& place : data_places("distributions"))
    for (const auto& entry : fs::directory_iterator(place, error)) {
      const fs::path real = fs::weakly_canonical(entry.path(), error);
      if (entry.path().extension() != ".json" || std::find(seen.begin(), seen.end(), real) != seen.end())
        continue;
      seen.push_back(real);
      found.push_back(entry.path().lexically_normal().string());
    }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace deeptail
