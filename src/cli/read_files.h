// What a command reads, so that it does not write over it.
#pragma once

#include <string>
#include <vector>

namespace deeptail::cli {

class ReadFiles {
 public:
  void add_file(const std::string& path);
  void add_run(const std::string& folder);  // its header, shards and claims
  void add_folder(const std::string& folder, const std::string& suffix = "");  // files whose names end so
  void add_subject(const std::string& model,
                   const std::string& dist);  // by names or paths; dist may be empty

  // Throws InputError when `out` is one of these, under whatever name. For before the work.
  void refuse_output(const std::string& out) const;

 private:
  std::vector<std::string> files_, runs_;
};

}  // namespace deeptail::cli
