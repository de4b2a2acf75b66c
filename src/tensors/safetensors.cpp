#include "tensors/safetensors.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "core/json.h"
#include "tensors/byte_reader.h"
#include "tensors/layout.h"

namespace deeptail {

namespace {

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the limit of the reference implementation

constexpr std::array<std::pair<std::string_view, DType>, 8> kDTypes{{{"F64", DType::kF64},
                                                                     {"F32", DType::kF32},
                                                                     {"F16", DType::kF16},
                                                                     {"BF16", DType::kBF16},
                                                                     {"I64", DType::kI64},
                                                                     {"I32", DType::kI32},
                                                                     {"U8", DType::kU8},
                                                                     {"BOOL", DType::kBool}}};

// One tensor of the header. Offsets count from the start of the data.
struct Entry {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin, end;
};

// Walks through the header before a document is built from it, and refuses what a safetensors header cannot
// hold: deep nesting, repeated names, long arrays. So the document stays within a small multiple of its text.
// (A parser callback could do the same, but takes quadratic time in the number of tensors.)
class HeaderCheck : public JsonWalk {
 public:
  explicit HeaderCheck(std::string_view where) : where_(where) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(std::int64_t) override { return value(); }
  bool number_unsigned(std::uint64_t) override { return value(); }
  bool number_float(double, const std::string&) override { return value(); }
  bool string(std::string&) override { return value(); }
  bool binary(Json::binary_t&) override { return value(); }
  bool key(std::string& name) override {
    if (depth_ == 1 && !names_.insert(name).second)
      throw InputError("{}: header: tensor '{}' appears twice", where_, printable(name));
    return true;
  }
  bool start_object(std::size_t) override { return open(depth_ <= 1); }
  bool start_array(std::size_t) override { return open(depth_ == 2); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) override {
    if (dynamic_cast<const Json::out_of_range*>(&error) != nullptr)
      throw InputError("{}: header holds a number that is out of range, near offset {}", where_,
                       8 + position);
    throw InputError("{}: header is not valid JSON at offset {}", where_, 8 + position);
  }

 private:
  bool open(bool allowed) {
    if (!allowed)
      throw InputError("{}: header: expected {{name: {{dtype, shape, data_offsets}}}}, found a nested value",
                       where_);
    array_length_ = 0;
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }
  bool value() {
    if (depth_ == 3 && ++array_length_ > kMaxRank)
      throw InputError("{}: header: an array has more than {} numbers", where_, kMaxRank);
    return true;
  }

  std::string_view where_;
  int depth_ = 0;  // 1: names of tensors, 2: fields of one, 3: inside shape or data_offsets
  std::size_t array_length_ = 0;
  std::unordered_set<std::string> names_;
};

Json parse_header(std::string_view text, std::string_view where) {
  {
    HeaderCheck check(where);
    walk_json(text, check);
  }
  return parse_json(text, where);
}

// An array of non-negative integers.
std::vector<std::int64_t> read_numbers(const Json& tensor, const char* field, std::string_view where) {
  const auto found = tensor.find(field);
  if (found == tensor.end() || !found->is_array())
    throw InputError("{}: expected \"{}\" to be an array of integers", where, field);
  std::vector<std::int64_t> numbers;
  for (const Json& number : *found) {
    // Numbers above 2^63 would turn negative; no file is that large.
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > INT64_MAX)
      throw InputError("{}: \"{}\" holds {}, expected an integer of at least 0", where, field,
                       printable(json_text(number, true), 30));
    numbers.push_back(number.get<std::int64_t>());
  }
  return numbers;
}

DType read_dtype(const Json& tensor, std::string_view where) {
  const auto found = tensor.find("dtype");
  if (found == tensor.end() || !found->is_string())
    throw InputError("{}: expected \"dtype\" to be a string", where);
  const auto name = found->get<std::string>();
  for (const auto& [known, dtype] : kDTypes)
    if (known == name) return dtype;
  throw InputError("{}: unknown dtype '{}', expected F64, F32, F16, BF16, I64, I32, U8 or BOOL", where,
                   printable(name));
}

Entry read_entry(const std::string& name, const Json& tensor, std::string_view file) {
  const std::string where = fmt::format("{}: tensor '{}'", file, printable(name));
  if (!tensor.is_object())
    throw InputError("{}: expected an object with dtype, shape and data_offsets", where);
  Entry entry{name, read_dtype(tensor, where), read_numbers(tensor, "shape", where), 0, 0};
  const auto offsets = read_numbers(tensor, "data_offsets", where);
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    throw InputError("{}: expected data_offsets [begin, end] with begin <= end, found {}", where,
                     shape_text(offsets));
  entry.begin = static_cast<std::uint64_t>(offsets[0]);
  entry.end = static_cast<std::uint64_t>(offsets[1]);
  const auto expected = byte_size(entry.dtype, entry.shape);
  if (!expected) throw InputError("{}: shape {} is too large", where, shape_text(entry.shape));
  if (*expected != entry.end - entry.begin)
    throw InputError("{}: shape {} of {} needs {} bytes, but data_offsets {} span {}", where,
                     shape_text(entry.shape), name_of(entry.dtype), *expected, shape_text(offsets),
                     entry.end - entry.begin);
  return entry;
}

// The ranges, sorted, must tile [0, data_size).
void check_ranges(const std::vector<Entry>& entries, std::uint64_t data_size, std::string_view where) {
  std::uint64_t expected = 0;
  std::string_view previous = "the header";
  for (const Entry& entry : entries) {
    const std::string name = printable(entry.name);
    if (entry.end > data_size)
      throw InputError("{}: truncated: tensor '{}' ends at byte {} of the data, but the file holds {}", where,
                       name, entry.end, data_size);
    if (entry.begin < expected)
      throw InputError("{}: tensor '{}' at [{}, {}] overlaps '{}', which ends at {}", where, name,
                       entry.begin, entry.end, printable(previous), expected);
    if (entry.begin > expected)
      throw InputError(
          "{}: misaligned: tensor '{}' starts at byte {} of the data, expected {}, where '{}' ends", where,
          name, entry.begin, expected, printable(previous));
    expected = entry.end;
    previous = entry.name;
  }
  if (expected != data_size)
    throw InputError("{}: the tensors end at byte {} of the data, but {} bytes follow", where, expected,
                     data_size - expected);
}

// Leaves the reader at the start of the data.
Json read_header(ByteReader& reader, std::string_view where) {
  const auto header_size = reader.read<std::uint64_t>("the header length");
  if (header_size > kMaxHeader)
    throw InputError("{}: offset 0: header length {} is above the limit of {}; not a safetensors file?",
                     where, header_size, kMaxHeader);
  if (header_size > reader.remaining())
    throw InputError("{}: offset 0: header length {} reaches beyond the file ({} bytes are left); truncated?",
                     where, header_size, reader.remaining());
  const auto header_text = reader.text(header_size, "the header");
  if (!header_text.starts_with('{'))
    throw InputError("{}: offset 8: expected a header that starts with '{{', found '{}'", where,
                     printable(header_text.substr(0, 1)));

  return parse_header(header_text, where);
}

}  // namespace

std::map<std::string, std::string> parse_safetensors_metadata(std::span<const std::byte> file,
                                                              std::string_view where) {
  ByteReader reader(file, where);
  const Json header = read_header(reader, where);
  std::map<std::string, std::string> metadata;
  const auto found = header.find("__metadata__");
  if (found == header.end()) return metadata;
  for (const auto& [key, value] : found->items()) {
    if (!found->is_object() || !value.is_string())
      throw InputError("{}: __metadata__: expected an object of strings", where);
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

TensorMap parse_safetensors(std::span<const std::byte> file, std::string_view where) {
  ByteReader reader(file, where);
  const Json header = read_header(reader, where);
  std::vector<Entry> entries;
  for (const auto& [name, tensor] : header.items())
    if (name != "__metadata__") entries.push_back(read_entry(name, tensor, where));
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  check_ranges(entries, reader.remaining(), where);

  const auto data = file.subspan(reader.offset());
  TensorMap tensors;
  for (Entry& e : entries) {
    Tensor tensor{e.name, e.dtype, std::move(e.shape), data.subspan(e.begin, e.end - e.begin), nullptr};
    tensors.emplace(std::move(e.name), std::move(tensor));
  }
  return tensors;
}

}  // namespace deeptail
