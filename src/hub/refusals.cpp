#include "hub/refusals.h"

#include "core/json.h"

namespace deeptail {

namespace {

// Without a token the hub says 401 of repositories that do not exist, too.
std::string not_allowed(const HubName& name, const HubSettings& settings, bool gated) {
  const std::string page = fmt::format("{}/{}", settings.endpoint, name.repo);
  if (settings.token.empty())
    return fmt::format(
        "there is no such repository, or it asks who you are: check the name, and for a private or gated one "
        "set HF_TOKEN{}",
        gated ? fmt::format(" after asking for access on {}", page) : "");
  if (gated) return fmt::format("the repository is gated: ask for access on {}", page);
  return "the token (HF_TOKEN or the file of `hf auth login`) is not accepted or may not read this "
         "repository";
}

std::string not_found(const HubName& name, std::string_view error) {
  if (error == "RevisionNotFound") return fmt::format("the repository has no revision {}", name.revision);
  if (error == "EntryNotFound") return "the repository has no such file";
  return "there is no such repository or revision; check the name";
}

std::string too_many(const HttpHead& head) {
  const std::string wait = printable(head.field("retry-after"), 40);
  if (wait.empty()) return "too many requests; wait a while, then try again";
  const bool seconds = wait.find_first_not_of("0123456789") == wait.npos;
  return fmt::format("too many requests; try again {} {}", seconds ? "in" : "after",
                     seconds ? wait + " seconds" : wait);
}

}  // namespace

void refuse_answer(const HttpResult& result, const HubName& name, const std::string& what,
                   const HubSettings& settings) {
  const HttpHead& head = result.head;
  const std::string_view error = head.field("x-error-code");
  const std::string origin = origin_of(result.url);
  std::string why;
  if (head.status == 429)
    why = too_many(head);
  else if (head.status == 408 || head.status >= 500)
    why = "the server is in trouble; try again later";
  else if (origin != origin_of(settings.endpoint))  // a store of large files: it knows no users
    why = "the address that the hub gave is not valid; try again";
  else if (head.status == 401 || head.status == 403)
    why = not_allowed(name, settings, error == "GatedRepo");
  else if (head.status == 404)
    why = not_found(name, error);
  else
    why = "not an answer that was expected; check HF_ENDPOINT";
  throw InputError("model {}: {} answers {}: {}", what, origin, head.status, why);
}

}  // namespace deeptail
