#include "tensors/gguf_metadata.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/json.h"

namespace deeptail {

namespace {

constexpr std::uint64_t kMaxKey = 65535, kMaxString = std::uint64_t{16} << 20;
constexpr std::uint64_t kMaxArray = std::uint64_t{1} << 24;  // more tokens than any vocabulary has
constexpr std::size_t kTypes = std::size(EnumNames<GgufType>::kAll);

// The least that a value of this type takes in the file.
std::size_t least_bytes(GgufType type) {
  constexpr std::array<std::size_t, kTypes> kBytes = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
  return kBytes[static_cast<std::size_t>(type)];
}

GgufType read_type(ByteReader& reader, std::string_view key) {
  const auto type = reader.read<std::uint32_t>("the type of a value");
  if (type >= kTypes)
    throw InputError("{}: key '{}': type {} of a value is unknown, expected 0 to {}", reader.where(),
                     printable(key), type, kTypes - 1);
  return static_cast<GgufType>(type);
}

template <class Wide, class Stored>
std::vector<Wide> read_array(ByteReader& reader, std::uint64_t n) {
  std::vector<Wide> values(n);
  for (Wide& value : values) value = static_cast<Wide>(reader.read<Stored>("a value"));
  return values;
}

std::vector<std::uint64_t> read_booleans(ByteReader& reader, std::uint64_t n, std::string_view key) {
  auto values = read_array<std::uint64_t, std::uint8_t>(reader, n);
  for (const std::uint64_t value : values)
    if (value > 1)
      throw InputError("{}: key '{}': expected 0 or 1 for a bool, found {}", reader.where(), printable(key),
                       value);
  return values;
}

std::vector<std::string> read_texts(ByteReader& reader, std::uint64_t n) {
  std::vector<std::string> values(n);
  for (std::string& value : values) value = read_gguf_string(reader, "a string");
  return values;
}

// n values of one type.
void read_values(ByteReader& reader, std::uint64_t n, std::string_view key, GgufValue& out) {
  switch (out.type) {
    case GgufType::kU8:
      out.values = read_array<std::uint64_t, std::uint8_t>(reader, n);
      return;
    case GgufType::kI8:
      out.values = read_array<std::int64_t, std::int8_t>(reader, n);
      return;
    case GgufType::kU16:
      out.values = read_array<std::uint64_t, std::uint16_t>(reader, n);
      return;
    case GgufType::kI16:
      out.values = read_array<std::int64_t, std::int16_t>(reader, n);
      return;
    case GgufType::kU32:
      out.values = read_array<std::uint64_t, std::uint32_t>(reader, n);
      return;
    case GgufType::kI32:
      out.values = read_array<std::int64_t, std::int32_t>(reader, n);
      return;
    case GgufType::kU64:
      out.values = read_array<std::uint64_t, std::uint64_t>(reader, n);
      return;
    case GgufType::kI64:
      out.values = read_array<std::int64_t, std::int64_t>(reader, n);
      return;
    case GgufType::kF32:
      out.values = read_array<double, float>(reader, n);
      return;
    case GgufType::kF64:
      out.values = read_array<double, double>(reader, n);
      return;
    case GgufType::kBool:
      out.values = read_booleans(reader, n, key);
      return;
    case GgufType::kString:
      out.values = read_texts(reader, n);
      return;
    case GgufType::kArray:
      throw InputError("{}: key '{}': an array of arrays; expected one of numbers or strings", reader.where(),
                       printable(key));
  }
}

GgufValue read_value(ByteReader& reader, std::string_view key) {
  GgufValue value{.type = read_type(reader, key)};
  std::uint64_t n = 1;
  if (value.type == GgufType::kArray) {
    value.is_array = true;
    value.type = read_type(reader, key);
    n = reader.read<std::uint64_t>("the length of an array");
    // Before anything is allocated for it.
    if (n > kMaxArray || n > reader.remaining() / least_bytes(value.type))
      throw InputError(
          "{}: key '{}': an array of {} values of type {}, expected at most {}; {} bytes are left",
          reader.where(), printable(key), n, name_of(value.type), kMaxArray, reader.remaining());
  }
  read_values(reader, n, key, value);
  return value;
}

std::string_view read_key(ByteReader& reader) {
  const std::size_t at = reader.offset();
  const auto size = reader.read<std::uint64_t>("the length of a key");
  if (size == 0 || size > kMaxKey)
    throw InputError("{}: offset {}: a key of {} bytes, expected 1 to {}", reader.where(), at, size, kMaxKey);
  const std::string_view key = reader.text(size, "a key");
  if (std::ranges::any_of(key, [](char c) { return c <= ' ' || c > '~'; }))
    throw InputError("{}: offset {}: key '{}' is not of printable ASCII characters", reader.where(), at,
                     printable(key));
  return key;
}

std::string found_text(const GgufValue& value) {
  if (value.is_array) return fmt::format("an array of {}", name_of(value.type));
  return std::visit(
      [&](const auto& values) {
        if constexpr (std::is_same_v<std::decay_t<decltype(values[0])>, std::string>)
          return fmt::format("\"{}\"", printable(values[0], 40));
        else
          return fmt::format("{} ({})", values[0], name_of(value.type));
      },
      value.values);
}

}  // namespace

std::string_view read_gguf_string(ByteReader& reader, std::string_view what) {
  const std::size_t at = reader.offset();
  const auto size = reader.read<std::uint64_t>(what);
  if (size > kMaxString)
    throw InputError("{}: offset {}: {} of {} bytes, expected at most {}", reader.where(), at, what, size,
                     kMaxString);
  return reader.text(size, what);
}

void GgufMetadata::read(ByteReader& reader, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::string key(read_key(reader));
    if (has(key)) throw InputError("{}: key '{}' appears twice", where_, printable(key));
    values_.emplace(key, read_value(reader, key));
  }
}

std::vector<std::string> GgufMetadata::keys() const {
  std::vector<std::string> out;
  for (const auto& [key, value] : values_) out.push_back(key);
  std::ranges::sort(out);
  return out;
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

const GgufValue& GgufMetadata::at(std::string_view key) const {
  if (const GgufValue* value = find(key)) return *value;
  throw InputError("{}: key '{}' is missing", where_, key);
}

void GgufMetadata::fail_expected(std::string_view key, std::string_view expected) const {
  throw InputError("{}: key '{}': found {}; expected {}", where_, key, found_text(at(key)), expected);
}

std::uint64_t GgufMetadata::count(std::string_view key, std::uint64_t least, std::uint64_t most) const {
  const GgufValue& value = at(key);
  if (!value.is_array && value.type != GgufType::kBool) {
    if (const auto* u = std::get_if<0>(&value.values);
        u != nullptr && u->front() >= least && u->front() <= most)
      return u->front();
    if (const auto* i = std::get_if<1>(&value.values); i != nullptr && i->front() >= 0 &&
                                                       static_cast<std::uint64_t>(i->front()) >= least &&
                                                       static_cast<std::uint64_t>(i->front()) <= most)
      return static_cast<std::uint64_t>(i->front());
  }
  fail_expected(key, fmt::format("a whole number from {} to {}", least, most));
}

std::vector<double> GgufMetadata::numbers(std::string_view key) const {
  const GgufValue& value = at(key);
  std::vector<double> out;
  if (const auto* d = std::get_if<2>(&value.values)) out = *d;
  if (!value.is_array || value.type != GgufType::kF32 ||
      !std::ranges::all_of(out, [](double v) { return std::isfinite(v); }))
    fail_expected(key, "an array of finite f32");
  return out;
}

double GgufMetadata::number(std::string_view key) const {
  const GgufValue& value = at(key);
  if (!value.is_array && value.type != GgufType::kBool) {
    if (const auto* u = std::get_if<0>(&value.values)) return static_cast<double>(u->front());
    if (const auto* i = std::get_if<1>(&value.values)) return static_cast<double>(i->front());
    if (const auto* d = std::get_if<2>(&value.values); d != nullptr && std::isfinite(d->front()))
      return d->front();
  }
  fail_expected(key, "a finite number");
}

bool GgufMetadata::boolean(std::string_view key) const {
  const GgufValue& value = at(key);
  if (value.is_array || value.type != GgufType::kBool) fail_expected(key, "a bool");
  return std::get<0>(value.values).front() != 0;
}

const std::string& GgufMetadata::text(std::string_view key) const {
  const GgufValue& value = at(key);
  if (value.is_array || value.type != GgufType::kString) fail_expected(key, "a string");
  return std::get<3>(value.values).front();
}

const std::vector<std::string>& GgufMetadata::texts(std::string_view key) const {
  const GgufValue& value = at(key);
  if (!value.is_array || value.type != GgufType::kString) fail_expected(key, "an array of strings");
  return std::get<3>(value.values);
}

std::vector<std::int64_t> GgufMetadata::integers(std::string_view key) const {
  const GgufValue& value = at(key);
  if (value.is_array && value.type != GgufType::kBool) {
    if (const auto* i = std::get_if<1>(&value.values)) return *i;
    if (const auto* u = std::get_if<0>(&value.values);
        u != nullptr && std::ranges::all_of(*u, [](std::uint64_t v) { return v <= INT64_MAX; }))
      return {u->begin(), u->end()};
  }
  fail_expected(key, "an array of integers");
}

}  // namespace deeptail
