#include <curl/curl.h>

#include <stdexcept>

#include "deeptail/core.h"
#include "hub/http.h"

namespace deeptail {

namespace {

struct CurlDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using CurlHandle = std::unique_ptr<CURL, CurlDeleter>;
using CurlUrl = std::unique_ptr<CURLU, CurlDeleter>;
using CurlList = std::unique_ptr<curl_slist, CurlDeleter>;

constexpr std::size_t kMostFields = 256, kLongestField = 16384;

// What the callbacks of one transfer share. Exceptions must not pass through C: they wait here.
struct Transfer {
  HttpHead head;
  const HttpSink* sink;
  const Watch* watch;
  bool stopped = false;
  std::exception_ptr error;

  template <class Body>
  bool guarded(const Body& body) {
    try {
      if (body()) return true;
    } catch (...) {
      error = std::current_exception();
    }
    stopped = true;
    return false;
  }
};

void take_field(HttpHead& head, std::string_view line) {
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {  // once more after "100 Continue" and the like
    head = {};
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == line.npos || line.size() > kLongestField || head.fields.size() >= kMostFields) return;
  std::string name(line.substr(0, colon));
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  std::string_view value = line.substr(colon + 1);
  while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
  while (value.ends_with(' ') || value.ends_with('\t')) value.remove_suffix(1);
  head.fields[name] = value;
}

std::size_t on_header(char* data, std::size_t size, std::size_t n, void* self) {
  Transfer& transfer = *static_cast<Transfer*>(self);
  return transfer.guarded([&] { return take_field(transfer.head, {data, size * n}), true; }) ? size * n : 0;
}

struct BodyTarget {
  CURL* handle;
  Transfer* transfer;
};

std::size_t on_body(char* data, std::size_t size, std::size_t n, void* self) {
  const BodyTarget& target = *static_cast<BodyTarget*>(self);
  Transfer& transfer = *target.transfer;
  long status = 0;
  curl_easy_getinfo(target.handle, CURLINFO_RESPONSE_CODE, &status);
  transfer.head.status = static_cast<int>(status);
  return transfer.guarded([&] { return (*transfer.sink)(transfer.head, {data, size * n}); }) ? size * n : 0;
}

int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  Transfer& transfer = *static_cast<Transfer*>(self);
  return transfer.guarded([&] { return goes_on(*transfer.watch, {}); }) ? 0 : 1;
}

void add_line(CurlList& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  list.release();
  list.reset(longer);
}

class CurlHttp : public Http {
 public:
  explicit CurlHttp(unsigned patience) : patience_(patience) {
    static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
    handle_.reset(curl_easy_init());
    if (started != CURLE_OK || handle_ == nullptr) throw std::runtime_error("libcurl cannot be started");
  }

  HttpResult get(const HttpRequest& request, const HttpSink& sink, const Watch& watch) override {
    CURL* handle = handle_.get();
    curl_easy_reset(handle);  // connections stay open
    Transfer transfer{.head = {}, .sink = &sink, .watch = &watch, .stopped = false, .error = {}};
    BodyTarget target{handle, &transfer};
    char words[CURL_ERROR_SIZE] = "";
    CurlList lines;
    add_line(lines, "Accept-Encoding: identity");  // ranges and sizes are those of the file itself
    if (!request.token.empty()) add_line(lines, "Authorization: Bearer " + request.token);
    if (request.from > 0) add_line(lines, fmt::format("Range: bytes={}-", request.from));
    set_options(request.url, words, lines.get(), transfer, target);
    const CURLcode code = curl_easy_perform(handle);
    if (transfer.error) std::rethrow_exception(transfer.error);
    return result_of(code, words, std::move(transfer));
  }

 private:
  void set_options(const std::string& url, char* words, curl_slist* lines, Transfer& transfer,
                   BodyTarget& target) {
    CURL* handle = handle_.get();
    const long patience = static_cast<long>(patience_);
    curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_USERAGENT, fmt::format("deeptail/{}", kVersion).c_str());
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, lines);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, patience);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, patience);
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, words);
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, &target);
    curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &transfer);
  }

  HttpResult result_of(CURLcode code, const char* words, Transfer transfer) {
    HttpResult result;
    long status = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
    result.head = std::move(transfer.head);
    result.head.status = static_cast<int>(status);
    result.stopped = transfer.stopped;
    if (char* location = nullptr;
        curl_easy_getinfo(handle_.get(), CURLINFO_REDIRECT_URL, &location) == CURLE_OK && location != nullptr)
      result.location = location;
    if (code != CURLE_OK && !transfer.stopped) result.broken = *words != 0 ? words : curl_easy_strerror(code);
    return result;
  }

  CurlHandle handle_;
  unsigned patience_;
};

}  // namespace

std::unique_ptr<Http> curl_http(unsigned patience) { return std::make_unique<CurlHttp>(patience); }

std::string origin_of(const std::string& url) {
  const CurlUrl parsed(curl_url());
  if (parsed == nullptr) throw std::bad_alloc();
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return "";
  std::string parts[3];
  constexpr CURLUPart kParts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
  for (std::size_t i = 0; i < 3; ++i) {
    char* text = nullptr;
    if (curl_url_get(parsed.get(), kParts[i], &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return "";
    parts[i] = text;
    curl_free(text);
    for (char& c : parts[i])
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (parts[0] != "http" && parts[0] != "https") return "";
  return fmt::format("{}://{}:{}", parts[0], parts[1], parts[2]);
}

}  // namespace deeptail
