// What the library's errors advise, in flags.
#pragma once

#include <string>

#include "deeptail/core.h"

namespace deeptail::cli {

// The error's sentence, with the flag or command that its advice means behind it.
std::string sentence_of(const InputError& error);

}  // namespace deeptail::cli
