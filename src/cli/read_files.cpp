#include "cli/read_files.h"

#include <filesystem>

#include "deeptail/inputs.h"
#include "deeptail/model.h"

namespace deeptail::cli {

namespace {

namespace fs = std::filesystem;

// Also of files that are not there yet: the next to read the folder would take them for its own.
bool is_name_in_run(const std::string& name) {
  return name == "run.json" || name == "claims.lock" ||
         (name.starts_with("shard-") && name.ends_with(".jsonl"));
}

}  // namespace

void ReadFiles::add_file(const std::string& path) { files_.push_back(path); }

void ReadFiles::add_folder(const std::string& folder, const std::string& suffix) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().ends_with(suffix)) files_.push_back(entry->path().string());
}

void ReadFiles::add_run(const std::string& folder) {
  runs_.push_back(folder);
  files_.push_back(folder);  // where it is a packed run
  files_.push_back(folder + "/run.json");
  files_.push_back(folder + "/claims.lock");
  add_folder(folder, ".jsonl");
}

void ReadFiles::add_subject(const std::string& model, const std::string& dist) {
  const std::string folder = find_model(model);
  add_folder(folder);
  add_file(folder);  // a GGUF file stands for itself
  // A tokenizer may be shared by models, outside of their folders.
  if (const ModelConfig config = read_config(folder); !config.tokenizer_file.empty())
    add_file((fs::path(folder) / config.tokenizer_file).string());
  if (!dist.empty()) add_file(find_distribution(dist));  // a prompt alone has no file
}

void ReadFiles::refuse_output(const std::string& out) const {
  std::error_code error;
  for (const std::string& file : files_)
    if (fs::equivalent(out, file, error))
      throw InputError("{}: cannot write: this command reads it ({}); choose another file", out, file);
  const fs::path place = fs::absolute(out, error);
  for (const std::string& run : runs_)
    if (is_name_in_run(place.filename().string()) && fs::equivalent(place.parent_path(), run, error))
      throw InputError("{}: cannot write: a file of this name belongs to the run; choose another", out);
}

}  // namespace deeptail::cli
