// What a GGUF file says besides its tensors: keys with typed values, read with a sentence for every way in
// which a value may be other than expected.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "deeptail/enum_names.h"
#include "tensors/byte_reader.h"

namespace deeptail {

enum class GgufType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};
template <>
struct EnumNames<GgufType> {
  static constexpr std::string_view kAll[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                              "bool", "string", "array", "u64", "i64", "f64"};
};

// A value, or the values of an array.
struct GgufValue {
  GgufType type = GgufType::kU32;  // of each
  bool is_array = false;
  std::variant<std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>,
               std::vector<std::string>>
      values = {};
};

class GgufMetadata {
 public:
  explicit GgufMetadata(std::string where = {}) : where_(std::move(where)) {}

  // Reads n keys with their values. Throws InputError for a key that is there already.
  void read(ByteReader& reader, std::uint64_t n);

  bool has(std::string_view key) const { return find(key) != nullptr; }
  const GgufValue* find(std::string_view key) const;  // null where it is absent
  const GgufValue& at(std::string_view key) const;    // throws InputError where it is absent
  const std::string& where() const { return where_; }
  std::size_t size() const { return values_.size(); }
  std::vector<std::string> keys() const;  // sorted

  // Each throws InputError where the key is absent or its value of another kind.
  std::uint64_t count(std::string_view key, std::uint64_t least, std::uint64_t most) const;
  double number(std::string_view key) const;  // finite; integers count as numbers
  bool boolean(std::string_view key) const;
  const std::string& text(std::string_view key) const;
  const std::vector<std::string>& texts(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key) const;  // of an array
  std::vector<double> numbers(std::string_view key) const;         // of an array; finite

  // Throws InputError: found this; expected that.
  [[noreturn]] void fail_expected(std::string_view key, std::string_view expected) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::string where_;
  std::unordered_map<std::string, GgufValue, Hash, std::equal_to<>> values_;
};

// A string of a GGUF file: its length as u64, then its bytes.
std::string_view read_gguf_string(ByteReader& reader, std::string_view what);

}  // namespace deeptail
