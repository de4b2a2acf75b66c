// GGUF files as strings, valid and broken.
#pragma once

#include <optional>

#include "build_files.h"
#include "tensors/gguf_metadata.h"

namespace deeptail::testing {

inline std::string gguf_string(const std::string& text) {
  return little_endian<std::uint64_t>(text.size()) + text;
}

class GgufBuilder {
 public:
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;  // of offsets and padding; the key is the caller's
  std::string magic = "GGUF";

  // A key with the bytes of its value.
  GgufBuilder& key(const std::string& name, GgufType type, const std::string& value) {
    keys_ += gguf_string(name) + little_endian(static_cast<std::uint32_t>(type)) + value;
    ++n_keys_;
    return *this;
  }
  GgufBuilder& u32(const std::string& name, std::uint32_t value) {
    return key(name, GgufType::kU32, little_endian(value));
  }
  GgufBuilder& f32(const std::string& name, float value) {
    return key(name, GgufType::kF32, little_endian(value));
  }
  GgufBuilder& boolean(const std::string& name, bool value) {
    return key(name, GgufType::kBool, std::string(1, static_cast<char>(value)));
  }
  GgufBuilder& text(const std::string& name, const std::string& value) {
    return key(name, GgufType::kString, gguf_string(value));
  }
  GgufBuilder& array(const std::string& name, GgufType type, std::uint64_t n, const std::string& values) {
    return key(name, GgufType::kArray,
               little_endian(static_cast<std::uint32_t>(type)) + little_endian(n) + values);
  }
  GgufBuilder& texts(const std::string& name, const std::vector<std::string>& values) {
    std::string bytes;
    for (const std::string& value : values) bytes += gguf_string(value);
    return array(name, GgufType::kString, values.size(), bytes);
  }

  // sizes: fastest first, as in the file. offset: where the entry says the data lies, unless it is the truth.
  GgufBuilder& tensor(const std::string& name, const std::vector<std::uint64_t>& sizes, std::uint32_t type,
                      const std::string& bytes, std::optional<std::uint64_t> offset = {}) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    tensors_ += gguf_string(name) + little_endian(static_cast<std::uint32_t>(sizes.size())) +
                bytes_of(sizes) + little_endian(type) +
                little_endian<std::uint64_t>(offset.value_or(data_.size()));
    data_ += bytes;
    ++n_tensors_;
    return *this;
  }
  GgufBuilder& floats(const std::string& name, const std::vector<std::uint64_t>& sizes,
                      const std::vector<float>& values) {
    return tensor(name, sizes, 0, bytes_of(values));
  }

  std::string build() const { return build(n_tensors_, n_keys_); }
  std::string build(std::uint64_t n_tensors, std::uint64_t n_keys) const {
    std::string file =
        magic + little_endian(version) + little_endian(n_tensors) + little_endian(n_keys) + keys_ + tensors_;
    file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data_;
  }

 private:
  std::string keys_, tensors_, data_;
  std::uint64_t n_keys_ = 0, n_tensors_ = 0;
};

}  // namespace deeptail::testing
