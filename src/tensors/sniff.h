// Tells tensor files apart by their first bytes.
#pragma once

#include <string_view>

#include "deeptail/core.h"
#include "deeptail/enum_names.h"

namespace deeptail {

enum class Format { kSafetensors, kSafetensorsIndex, kGguf, kTorchZip, kNpy };

template <>
struct EnumNames<Format> {
  static constexpr std::string_view kAll[] = {"safetensors", "a JSON file", "a GGUF file", "a PyTorch file",
                                              "a NumPy file"};
};

// Throws InputError for what is none of these, with its own message for git-LFS pointers, .pth files from
// before the zip format, tar files, and empty files.
Format sniff(const InputFile& file);

}  // namespace deeptail
