// A GGUF model in several files: NAME-00001-of-00003.gguf and so on.
#pragma once

#include <string>
#include <vector>

namespace deeptail {

// All files of the model that has this one: itself where it is alone.
std::vector<std::string> gguf_parts(const std::string& file);

}  // namespace deeptail
