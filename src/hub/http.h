// One GET request, and what came back. Only curl_http.cpp knows libcurl.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "deeptail/watch.h"

namespace deeptail {

struct HttpRequest {
  std::string url;
  std::string token = {};  // sent as it is: who asks decides whether this host may see it
  std::uint64_t from = 0;  // the first byte that is wanted
};

struct HttpHead {
  int status = 0;
  std::map<std::string, std::string, std::less<>> fields = {};  // names in lower case

  std::string_view field(std::string_view name) const;  // "" where there is none
};

struct HttpResult {
  HttpHead head = {};
  std::string url = {};       // who answered, after all redirects
  std::string location = {};  // of a redirect, as a whole address
  std::string broken = {};    // why the transfer ended early; "" when it did not
  bool stopped = false;       // by the sink or by the watch
};

// Takes a piece of the body; false ends the transfer.
using HttpSink = std::function<bool(const HttpHead& head, std::string_view piece)>;

class Http {
 public:
  virtual ~Http() = default;
  // Follows no redirect. The watch is asked at least once a second, and told nothing: the sink knows more.
  virtual HttpResult get(const HttpRequest& request, const HttpSink& sink, const Watch& watch) = 0;
};
// patience: seconds without a byte, or without a connection, after which a transfer is broken.
std::unique_ptr<Http> curl_http(unsigned patience);

// "scheme://host:port" of an address, with the port where it is the usual one too; "" for what is no http or
// https address.
std::string origin_of(const std::string& url);
// Text as a part of an address, slashes included.
std::string percent_encoded(std::string_view text);

// Follows redirects. The token goes to the origin of the first address and to no other; a redirect away from
// https is refused, as is a chain of them without end.
HttpResult get_with_redirects(Http& http, HttpRequest request, const HttpSink& sink, const Watch& watch);

}  // namespace deeptail
