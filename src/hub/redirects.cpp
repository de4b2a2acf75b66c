#include "core/json.h"
#include "deeptail/core.h"
#include "hub/http.h"

namespace deeptail {

namespace {

constexpr int kMostRedirects = 10;

bool is_redirect(const HttpResult& result) {
  return result.head.status >= 300 && result.head.status < 400 && !result.location.empty();
}

}  // namespace

std::string_view HttpHead::field(std::string_view name) const {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string_view() : found->second;
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

HttpResult get_with_redirects(Http& http, HttpRequest request, const HttpSink& sink, const Watch& watch) {
  const std::string token = request.token, first = request.url, home = origin_of(first);
  // What a redirect says of itself is for nobody.
  const HttpSink own = [&](const HttpHead& head, std::string_view piece) {
    return head.status >= 300 && head.status < 400 ? true : sink(head, piece);
  };
  for (int n = 0; n <= kMostRedirects; ++n) {
    const std::string origin = origin_of(request.url);
    request.token = origin == home ? token : "";
    HttpResult result = http.get(request, own, watch);
    result.url = request.url;
    if (!is_redirect(result)) return result;
    const std::string next = origin_of(result.location);
    if (next.empty() || (origin.starts_with("https:") && !next.starts_with("https:")))
      throw InputError("{}: the server leads to {}, expected {}", printable(request.url, 200),
                       printable(result.location, 200),
                       origin.starts_with("https:") ? "an https address" : "an http or https address");
    request.url = result.location;
  }
  throw InputError("{}: more than {} redirects, one after the other", printable(first, 200), kMostRedirects);
}

}  // namespace deeptail
