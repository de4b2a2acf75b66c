// How much of the same a test does.
#pragma once

namespace deeptail {

// Work that only repeats is cut under the sanitizers, which run it tens of times slower: they look for
// mistakes that the first repetitions make as well. What the numbers come out as is the release build's
// matter.
template <class T>
constexpr T sized([[maybe_unused]] T full, [[maybe_unused]] T sanitized) {
#ifdef DEEPTAIL_SANITIZED
  return sanitized;
#else
  return full;
#endif
}

}  // namespace deeptail
