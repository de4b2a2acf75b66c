#include "c_api/guard.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "deeptail/core.h"
#include "deeptail/device.h"

namespace deeptail::c_api {

namespace {

std::string& last_error() {
  thread_local std::string sentence;
  return sentence;
}

dt_status failed(dt_status status, std::string_view sentence) {
  try {
    last_error() = sentence;
  } catch (...) {  // no memory for a sentence: the status has to do
    last_error().clear();
  }
  return status;
}

}  // namespace

dt_status guarded(const std::function<void()>& work) {
  try {
    work();
    return DT_OK;
  } catch (const StoppedEarly&) {
    return failed(DT_STOPPED, "stopped before there was a result");
  } catch (const DeviceError& e) {
    return failed(DT_DEVICE_ERROR, e.what());
  } catch (const InputError& e) {
    return failed(DT_INPUT_ERROR, e.what());
  } catch (const std::filesystem::filesystem_error& e) {
    return failed(DT_INPUT_ERROR, e.path1().string() + ": " + e.code().message());
  } catch (const std::bad_alloc&) {
    return failed(DT_MEMORY_ERROR, "out of memory");
  } catch (const std::exception& e) {
    return failed(DT_BUG, e.what());
  } catch (...) {
    return failed(DT_BUG, "unknown error");
  }
}

std::string_view given_text(const char* text, std::string_view name) {
  require(text, name);
  return text;
}

void require(const void* pointer, std::string_view name) {
  if (pointer == nullptr) throw InputError("{}: expected a value, found none", name);
}

void give_text(std::string_view text, dt_text* out) {
  require(out, "out");
  char* data = static_cast<char*>(std::malloc(text.size() + 1));
  if (data == nullptr) throw std::bad_alloc();
  if (!text.empty()) std::memcpy(data, text.data(), text.size());
  data[text.size()] = '\0';
  std::free(out->data);
  *out = {.data = data, .size = text.size()};
}

}  // namespace deeptail::c_api

extern "C" {

const char* dt_version(void) { return deeptail::kVersion.data(); }
int dt_abi_version(void) { return DT_ABI_VERSION; }
const char* dt_last_error(void) { return deeptail::c_api::last_error().c_str(); }

void dt_text_free(dt_text* text) {
  if (text == nullptr) return;
  std::free(text->data);
  *text = {};
}

dt_status dt_add_data_folder(const char* folder) {
  using namespace deeptail::c_api;
  return guarded([&] { deeptail::add_data_folder(std::string(given_text(folder, "folder"))); });
}

}  // extern "C"
