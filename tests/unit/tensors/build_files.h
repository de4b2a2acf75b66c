// Tensor files as strings, valid and broken, for the tests of the readers.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "deeptail/tensors.h"

namespace deeptail::testing {

template <class T>
std::string little_endian(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline const std::string kSix = bytes_of<float>({-1, 0, 1, 2, 3, 4});

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::string safetensors_file(const std::string& header, const std::string& data) {
  return little_endian<std::uint64_t>(header.size()) + header + data;
}

struct ZipItem {
  std::string name, data;
  std::uint16_t method = 0, flags = 0;
};

struct ZipOptions {
  bool zip64 = false;
  std::string comment;
};

// A zip file with stored data; `method` and `flags` are only claimed.
std::string zip_file(const std::vector<ZipItem>& items, const ZipOptions& options = {});

// NAME/data.pkl and storages NAME/data/KEY, as torch.save writes them.
std::string torch_file(const std::string& pickle,
                       const std::vector<std::pair<std::string, std::string>>& storages);

// Pickle fragments.
std::string pickle_string(const std::string& text);                                           // BINUNICODE
std::string pickle_tuple(const std::vector<std::int32_t>& values);                            // of BININT
std::string pickle_storage(const std::string& type, const std::string& key, std::int32_t n);  // BINPERSID
std::string pickle_tensor(const std::string& storage, std::int32_t offset, const std::string& size,
                          const std::string& stride);                                    // REDUCE
std::string pickle_dict(const std::vector<std::pair<std::string, std::string>>& items);  // SETITEMS
std::string pickle_program(const std::string& body);                                     // PROTO ... STOP

std::string npy_file(const std::string& dict, const std::string& data, int version = 1);

// A folder that disappears with the object.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string path(const std::string& name = "") const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const;

 private:
  std::filesystem::path folder_;
};

std::string read_whole(const std::string& path);
inline std::string data_path(const std::string& name) {
  return std::string(DEEPTAIL_TEST_DATA) + "/tensors/" + name;
}

// Runs `action`, which must throw InputError with every one of `fragments` in its message.
template <class Action>
void expect_refused(Action action, const std::vector<std::string>& fragments) {
  try {
    action();
    ADD_FAILURE() << "accepted, expected an error with '" << fragments.front() << "'";
  } catch (const InputError& e) {
    for (const auto& fragment : fragments)
      EXPECT_NE(std::string(e.what()).find(fragment), std::string::npos)
          << "message: " << e.what() << "\nexpected: " << fragment;
  }
}

}  // namespace deeptail::testing
