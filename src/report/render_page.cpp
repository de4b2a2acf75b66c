#include <zlib.h>

#include <stdexcept>

#include "deeptail/report.h"

namespace deeptail {

namespace {

std::string deflated(std::string_view text) {
  uLongf size = ::compressBound(static_cast<uLong>(text.size()));
  std::string out(size, '\0');
  const int outcome =
      ::compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
                  static_cast<uLong>(text.size()), Z_BEST_COMPRESSION);
  if (outcome != Z_OK) throw std::runtime_error("zlib could not compress the report's data");
  out.resize(size);
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= n ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace

std::string render_page(std::string_view page, std::string_view json) {
  const std::size_t at = page.find(kPageData);
  if (at == std::string_view::npos || page.find(kPageData, at + 1) != std::string_view::npos)
    throw std::logic_error("the page template must hold the data's marker once");
  std::string out(page.substr(0, at));
  out += base64(deflated(json));
  out += page.substr(at + kPageData.size());
  return out;
}

}  // namespace deeptail
