// Refusing what would not fit, before anything is allocated.
#pragma once

#include <string>
#include <string_view>

namespace deeptail {

// What a run may take: half of the machine's memory, or of the process's own limit (ulimit -v) where that is
// smaller.
double memory_limit();
// "1.5 GiB".
std::string bytes_text(double bytes);
// Throws InputError, "WHAT would take 745 GiB of memory: expected at most 12 GiB ...; ADVICE", when bytes
// exceed the limit. A double, so that products of counts cannot wrap around.
void check_memory(std::string_view what, double bytes, std::string_view advice);

}  // namespace deeptail
