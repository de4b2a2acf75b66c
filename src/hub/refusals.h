// Answers other than the one that was asked for, told so that the user knows what to do.
#pragma once

#include <string>

#include "deeptail/hub.h"
#include "hub/http.h"
#include "hub/settings.h"

namespace deeptail {

// Throws InputError. what: "hf:org/name", or "hf:org/name: FILE".
[[noreturn]] void refuse_answer(const HttpResult& result, const HubName& name, const std::string& what,
                                const HubSettings& settings);

}  // namespace deeptail
