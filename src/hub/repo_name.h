// The hub's rules for names.
#pragma once

#include <string_view>

namespace deeptail {

// "org/name" or "name".
bool is_repo_name(std::string_view repo);

}  // namespace deeptail
