#include "core/json.h"
#include "hub/download.h"
#include "hub/refusals.h"

namespace deeptail {

namespace {

constexpr std::size_t kLargestListing = std::size_t{64} << 20;  // bytes

// Slashes stay.
std::string encoded_path(std::string_view path) {
  std::string out;
  for (;;) {
    const std::size_t slash = path.find('/');
    out += percent_encoded(path.substr(0, slash));
    if (slash == path.npos) return out;
    out += '/';
    path.remove_prefix(slash + 1);
  }
}

}  // namespace

std::string HubSession::api_url(const std::string& revision) const {
  return fmt::format("{}/api/models/{}/revision/{}?blobs=true", settings.endpoint, name.repo,
                     percent_encoded(revision));
}

std::string HubSession::file_url(const std::string& commit, const std::string& path) const {
  return fmt::format("{}/{}/resolve/{}/{}", settings.endpoint, name.repo, commit, encoded_path(path));
}

std::optional<HubListing> ask_listing(const HubSession& session, const std::string& revision,
                                      const Watch& watch) {
  const HttpRequest request{.url = session.api_url(revision), .token = session.settings.token};
  std::string text;
  bool too_long = false;
  const auto sink = [&](const HttpHead&, std::string_view piece) {
    too_long = text.size() + piece.size() > kLargestListing;
    if (!too_long) text += piece;
    return !too_long;
  };
  const HttpResult result = get_with_redirects(session.http, request, sink, watch);
  const std::string server = origin_of(result.url);
  if (too_long)
    throw InputError("model {}: {} sends a list of files of more than {} bytes", session.name.text(), server,
                     kLargestListing);
  if (result.stopped) return std::nullopt;
  if (result.head.status != 0 && result.head.status != 200)
    refuse_answer(result, session.name, session.name.text(), session.settings);
  if (!result.broken.empty())
    throw InputError("model {}: cannot ask {}: {}", session.name.text(), server,
                     printable(result.broken, 200));
  return parse_listing(text, request.url);
}

}  // namespace deeptail
