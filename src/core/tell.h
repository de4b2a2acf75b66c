// Words beside the result: progress, notes, errors. That they cannot be written must not fail a run.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace deeptail {

template <class... Args>
void tell(std::FILE* out, fmt::format_string<Args...> text, Args&&... args) {
  const std::string line = fmt::format(text, std::forward<Args>(args)...);
  if (std::fwrite(line.data(), 1, line.size(), out) < line.size()) std::clearerr(out);
}

}  // namespace deeptail
