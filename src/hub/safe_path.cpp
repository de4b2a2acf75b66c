#include "hub/safe_path.h"

#include <algorithm>

namespace deeptail {

namespace {

constexpr std::size_t kLongestPart = 255, kLongestPath = 1024;  // bytes; what Linux's file systems take

bool is_safe_part(std::string_view part) {
  return !part.empty() && part.size() <= kLongestPart && part != "." && part != ".." &&
         std::none_of(part.begin(), part.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\' || c == ':';
         });
}

}  // namespace

bool is_safe_path(std::string_view path) {
  if (path.size() > kLongestPath) return false;
  for (;;) {
    const std::size_t slash = path.find('/');
    if (!is_safe_part(path.substr(0, slash))) return false;
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace deeptail
