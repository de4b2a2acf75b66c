// The report's page without its data, embedded at build time.
#pragma once

#include <string_view>

namespace deeptail {

std::string_view report_page();

}  // namespace deeptail
