#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "deeptail/core.h"

namespace deeptail::cli {

OrderedJson json_number(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

OrderedJson json_number(std::optional<double> value) {
  return value ? json_number(*value) : OrderedJson(nullptr);
}

std::string short_number(double value) { return fmt::format("{:.6g}", value); }

void print_json(const OrderedJson& document) { fmt::print("{}\n", document.dump()); }

void write_whole_file(const std::string& path, std::string_view text) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  std::ofstream out(temporary, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(temporary, path, error);
  if (out && !error) return;
  const std::string reason = error ? error.message() : std::strerror(errno);
  std::filesystem::remove(temporary, error);
  throw InputError("{}: cannot write: {}", path, reason);
}

}  // namespace deeptail::cli
