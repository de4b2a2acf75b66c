// Unicode normalization form C.
#pragma once

#include <string>
#include <string_view>

namespace deeptail {

// `text` must be valid UTF-8. O(n log n) for any text, however many combining marks follow each other.
std::string to_nfc(std::string_view text);

}  // namespace deeptail
