// libcurl, opened when a model is fetched: for builds that must run where it may be missing. Everything else works without.
#include <curl/curl.h>
#include <dlfcn.h>

#include <cstdarg>

#include "deeptail/core.h"

#undef curl_easy_setopt
#undef curl_easy_getinfo

namespace deeptail {

namespace {

// The function of this name; its type is that of curl's header.
template <class Function>
Function* curl_function(const char* name) {
  static void* const library = [] {
    for (const char* file : {"libcurl.so.4", "libcurl-gnutls.so.4"})
      if (void* found = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return found;
    throw InputError(
        "fetching a model needs libcurl.so.4, which this system does not have; install libcurl, or fetch the "
        "model with "
        "huggingface_hub, whose cache is the same");
  }();
  void* const function = dlsym(library, name);
  if (function == nullptr) throw InputError("libcurl.so.4 has no {}: it is too old", name);
  return reinterpret_cast<Function*>(function);
}

// Newer versions take a const one.
template <class Handle>
Handle url_handle(CURLUcode (*)(Handle, CURLUPart, char**, unsigned));

}  // namespace

}  // namespace deeptail

#define DEEPTAIL_CURL(name) deeptail::curl_function<decltype(name)>(#name)

extern "C" {

CURLcode curl_global_init(long flags) { return DEEPTAIL_CURL(curl_global_init)(flags); }
CURL* curl_easy_init(void) { return DEEPTAIL_CURL(curl_easy_init)(); }
void curl_easy_cleanup(CURL* handle) { DEEPTAIL_CURL(curl_easy_cleanup)(handle); }
void curl_easy_reset(CURL* handle) { DEEPTAIL_CURL(curl_easy_reset)(handle); }
CURLcode curl_easy_perform(CURL* handle) { return DEEPTAIL_CURL(curl_easy_perform)(handle); }
const char* curl_easy_strerror(CURLcode code) { return DEEPTAIL_CURL(curl_easy_strerror)(code); }
void curl_free(void* pointer) { DEEPTAIL_CURL(curl_free)(pointer); }
curl_slist* curl_slist_append(curl_slist* list, const char* text) {
  return DEEPTAIL_CURL(curl_slist_append)(list, text);
}
void curl_slist_free_all(curl_slist* list) { DEEPTAIL_CURL(curl_slist_free_all)(list); }
CURLU* curl_url(void) { return DEEPTAIL_CURL(curl_url)(); }
void curl_url_cleanup(CURLU* url) { DEEPTAIL_CURL(curl_url_cleanup)(url); }
CURLUcode curl_url_get(decltype(deeptail::url_handle(curl_url_get)) url, CURLUPart part, char** text,
                       unsigned flags) {
  return DEEPTAIL_CURL(curl_url_get)(url, part, text, flags);
}
CURLUcode curl_url_set(CURLU* url, CURLUPart part, const char* text, unsigned flags) {
  return DEEPTAIL_CURL(curl_url_set)(url, part, text, flags);
}

// As libcurl does it in C.
#pragma GCC diagnostic ignored "-Wvarargs"
// Their third argument is a pointer, a long or a curl_off_t: all of one size, and passed in one way, on 64-bit systems.
static_assert(sizeof(long) == sizeof(void*) && sizeof(curl_off_t) == sizeof(void*));
CURLcode curl_easy_setopt(CURL* handle, CURLoption option, ...) {
  va_list arguments;
  va_start(arguments, option);
  void* const value = va_arg(arguments, void*);
  va_end(arguments);
  return DEEPTAIL_CURL(curl_easy_setopt)(handle, option, value);
}
CURLcode curl_easy_getinfo(CURL* handle, CURLINFO info, ...) {
  va_list arguments;
  va_start(arguments, info);
  void* const value = va_arg(arguments, void*);
  va_end(arguments);
  return DEEPTAIL_CURL(curl_easy_getinfo)(handle, info, value);
}

}  // extern "C"
