// The border: no exception crosses it, and text that goes out belongs to whoever asked for it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "deeptail/c_api.h"

namespace deeptail::c_api {

// Runs it; what it throws becomes a status, and the sentence that dt_last_error() gives.
dt_status guarded(const std::function<void()>& work);

// A run that was stopped before it had any result.
struct StoppedEarly {};

// Text from outside; throws InputError where there is none.
std::string_view given_text(const char* text, std::string_view name);
// Throws InputError for a pointer that must not be null.
void require(const void* pointer, std::string_view name);

void give_text(std::string_view text, dt_text* out);

// A structure as far as the caller's version has it; the rest is 0.
template <class T>
T sized_copy(const T* given) {
  T out = {};
  if (given == nullptr) return out;
  const std::size_t n = given->size < sizeof(T) ? given->size : sizeof(T);
  __builtin_memcpy(static_cast<void*>(&out), given, n);
  return out;
}

}  // namespace deeptail::c_api
