// fetch_from_hub with its surroundings handed in.
#pragma once

#include "deeptail/hub.h"
#include "hub/http.h"
#include "hub/settings.h"

namespace deeptail {

std::optional<HubFetch> fetch_with(Http& http, const HubSettings& settings, const HubName& name, bool refresh,
                                   const Watch& watch);

}  // namespace deeptail
