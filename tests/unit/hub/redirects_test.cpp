// Who is asked, and who sees the token, when servers lead elsewhere.
#include <gtest/gtest.h>

#include <map>

#include "deeptail/core.h"
#include "hub/http.h"

namespace deeptail {
namespace {

// Answers from a table of redirects, and keeps what was asked.
class TableHttp : public Http {
 public:
  std::map<std::string, std::string> redirects;
  std::vector<HttpRequest> asked;

  HttpResult get(const HttpRequest& request, const HttpSink& sink, const Watch&) override {
    asked.push_back(request);
    HttpResult result;
    const auto found = redirects.find(request.url);
    result.head.status = found == redirects.end() ? 200 : 302;
    if (found != redirects.end()) result.location = found->second;
    sink(result.head, request.url);
    return result;
  }
};

struct Got {
  std::string body;
  std::vector<std::string> tokens;
  HttpResult result;
};

Got get(std::map<std::string, std::string> redirects, const std::string& url) {
  TableHttp http;
  http.redirects = std::move(redirects);
  Got got;
  const auto sink = [&](const HttpHead&, std::string_view piece) { return got.body += piece, true; };
  got.result = get_with_redirects(http, {.url = url, .token = "t", .from = 5}, sink, {});
  for (const HttpRequest& request : http.asked) {
    got.tokens.push_back(request.token);
    EXPECT_EQ(request.from, 5u);
  }
  return got;
}

TEST(Redirects, TheTokenStaysWithTheFirstOrigin) {
  const std::string home = "https://hub.co/a";
  const auto tokens = [&](const std::string& next) { return get({{home, next}}, home).tokens[1]; };
  for (const char* same : {"https://hub.co/b", "https://HUB.co/b", "https://hub.co:443/b", "HTTPS://hub.co"})
    EXPECT_EQ(tokens(same), "t") << same;
  for (const char* other : {"https://hub.co:444/b", "https://hub.co.evil.com/b", "https://cdn.hub.co/b",
                            "https://evil.com/hub.co", "https://hub.co@evil.com/b",
                            "https://hub.co%2eevil.com/b", "https://hub.co.:443/"})
    EXPECT_EQ(tokens(other), "") << other;
  // There and back again: the origin is the hub's own once more.
  EXPECT_EQ(get({{home, "https://cdn.co/x"}, {"https://cdn.co/x", "https://hub.co/c"}}, home).tokens,
            (std::vector<std::string>{"t", "", "t"}));
}

TEST(Redirects, OnlyTheLastAnswersBodyArrives) {
  const Got got = get({{"http://a/1", "http://b/2"}, {"http://b/2", "http://b/3"}}, "http://a/1");
  EXPECT_EQ(got.body, "http://b/3");
  EXPECT_EQ(got.result.url, "http://b/3");
}

TEST(Redirects, RefusesWhatIsNoPlaceToGo) {
  EXPECT_THROW(get({{"http://a/1", "http://a/1"}}, "http://a/1"), InputError);
  for (const char* next : {"http://a/1", "file:///etc/passwd", "ftp://a/b", "nonsense"})
    EXPECT_THROW(get({{"https://a/1", next}}, "https://a/1"), InputError) << next;
}

TEST(Origin, IsSchemeHostAndPort) {
  EXPECT_EQ(origin_of("https://Hub.co/x?y"), "https://hub.co:443");
  EXPECT_EQ(origin_of("http://127.0.0.1:8080/x"), "http://127.0.0.1:8080");
  for (const char* other : {"", "x", "/x", "file:///x", "http://"}) EXPECT_EQ(origin_of(other), "") << other;
}

TEST(PercentEncoding, LeavesOnlyPlainCharacters) {
  EXPECT_EQ(percent_encoded("refs/pr/1"), "refs%2Fpr%2F1");
  EXPECT_EQ(percent_encoded("a b?c#d%\xc3\xa9-._~"), "a%20b%3Fc%23d%25%C3%A9-._~");
}

}  // namespace
}  // namespace deeptail
