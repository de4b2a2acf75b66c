#include "hub/gguf_parts.h"

#include <fmt/format.h>

#include <string_view>

namespace deeptail {

namespace {

constexpr std::string_view kOf = "-of-", kEnding = ".gguf";
constexpr std::size_t kDigits = 5, kTail = 1 + kDigits + kOf.size() + kDigits + kEnding.size();

bool is_number(std::string_view text) { return text.find_first_not_of("0123456789") == text.npos; }

}  // namespace

std::vector<std::string> gguf_parts(const std::string& file) {
  if (file.size() <= kTail) return {file};
  const std::string stem = file.substr(0, file.size() - kTail);
  const std::string_view tail = std::string_view(file).substr(stem.size());  // -00001-of-00003.gguf
  const std::string_view total = tail.substr(1 + kDigits + kOf.size(), kDigits);
  if (tail[0] != '-' || !is_number(tail.substr(1, kDigits)) || tail.substr(1 + kDigits, kOf.size()) != kOf ||
      !is_number(total) || !tail.ends_with(kEnding))
    return {file};
  std::vector<std::string> parts;
  for (int n = 1, last = std::stoi(std::string(total)); n <= last; ++n)
    parts.push_back(fmt::format("{}-{:05}-of-{}{}", stem, n, total, kEnding));
  return parts.empty() ? std::vector{file} : parts;
}

}  // namespace deeptail
