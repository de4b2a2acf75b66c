// Tells tensor files apart by their first bytes.
#pragma once

#include <string_view>

#include "deeptail/core.h"

namespace deeptail {

enum class Format { kSafetensors, kSafetensorsIndex, kGguf, kTorchZip, kNpy };

std::string_view name_of(Format format);

// Throws InputError for what is none of these, with its own message for git-LFS pointers, .pth files from
// before the zip format, tar files, and empty files.
Format sniff(const InputFile& file);

}  // namespace deeptail
