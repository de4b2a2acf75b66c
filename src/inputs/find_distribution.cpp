#include <algorithm>
#include <filesystem>

#include "core/data_places.h"
#include "core/nearest.h"
#include "deeptail/inputs.h"

namespace deeptail {

namespace fs = std::filesystem;

std::string find_distribution(const std::string& name_or_path) {
  std::error_code error;
  // "neox-digits/hex": in a folder of its own, for another tokenizer than the zoo's.
  const bool in_folder = name_or_path.find('/') != std::string::npos;
  if (name_or_path.ends_with(".json") || fs::path(name_or_path).is_absolute() ||
      (in_folder && fs::exists(name_or_path, error)))
    return name_or_path;
  std::vector<std::string> tried;
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
  const auto take = [&](const fs::path& file) {
    const fs::path real = fs::weakly_canonical(file, error);
    if (file.extension() != ".json" || std::find(seen.begin(), seen.end(), real) != seen.end()) return;
    seen.push_back(real);
    found.push_back(file.lexically_normal().string());
  };
  for (const fs::path& place : data_places("distributions"))
    for (const auto& entry : fs::directory_iterator(place, error)) {
      take(entry.path());
      if (!entry.is_directory(error)) continue;
      for (const auto& inner : fs::directory_iterator(entry.path(), error)) take(inner.path());
    }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace deeptail
