#include "tensors/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>

#include "core/json.h"
#include "core/regular_file.h"
#include "tensors/blocks.h"
#include "tensors/layout.h"

namespace deeptail {

namespace {

constexpr std::uint64_t kMaxEntries = 1u << 16;  // keys, tensors
constexpr std::uint64_t kMaxName = 63;
constexpr std::uint32_t kMaxDims = 4;
constexpr std::uint32_t kUsualAlignment = 32;

constexpr std::array<std::pair<std::uint32_t, DType>, 11> kGgmlTypes{{{0, DType::kF32},
                                                                      {1, DType::kF16},
                                                                      {2, DType::kQ4_0},
                                                                      {3, DType::kQ4_1},
                                                                      {6, DType::kQ5_0},
                                                                      {7, DType::kQ5_1},
                                                                      {8, DType::kQ8_0},
                                                                      {12, DType::kQ4_K},
                                                                      {13, DType::kQ5_K},
                                                                      {14, DType::kQ6_K},
                                                                      {30, DType::kBF16}}};
// Types that exist, or once did, and are not read here.
constexpr std::array<std::pair<std::uint32_t, std::string_view>, 31> kOtherTypes{
    {{4, "Q4_2"},        {5, "Q4_3"},        {9, "Q8_1"},        {10, "Q2_K"},    {11, "Q3_K"},
     {15, "Q8_K"},       {16, "IQ2_XXS"},    {17, "IQ2_XS"},     {18, "IQ3_XXS"}, {19, "IQ1_S"},
     {20, "IQ4_NL"},     {21, "IQ3_S"},      {22, "IQ2_S"},      {23, "IQ4_XS"},  {24, "I8"},
     {25, "I16"},        {26, "I32"},        {27, "I64"},        {28, "F64"},     {29, "IQ1_M"},
     {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"},   {33, "Q4_0_8_8"},   {34, "TQ1_0"},   {35, "TQ2_0"},
     {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}, {39, "MXFP4"},   {40, "NVFP4"},
     {41, "Q1_0"}}};

struct GgufTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape = {};
  std::uint64_t offset = 0, bytes = 0;
};

void check_version(ByteReader& reader) {
  if (!is_gguf(reader.text(4, "the magic number")))
    throw InputError("{}: offset 0: expected 'GGUF'", reader.where());
  const auto version = reader.read<std::uint32_t>("the version");
  if ((version & 0xffffu) == 0 && version != 0)
    throw InputError("{}: a GGUF file for big-endian machines, expected a little-endian one", reader.where());
  if (version != 2 && version != 3)
    throw InputError("{}: GGUF version {}, expected 2 or 3; convert the model anew", reader.where(), version);
}

std::uint64_t read_number_of(ByteReader& reader, std::string_view what) {
  const auto n = reader.read<std::uint64_t>(what);
  if (n > kMaxEntries)
    throw InputError("{}: {} is {}, expected at most {}", reader.where(), what, n, kMaxEntries);
  return n;
}

std::uint32_t alignment_of(const GgufMetadata& metadata) {
  constexpr std::string_view kKey = "general.alignment";
  const GgufValue* value = metadata.find(kKey);
  if (value == nullptr) return kUsualAlignment;
  if (value->is_array || value->type != GgufType::kU32 ||
      !std::has_single_bit(std::get<0>(value->values).front()))
    metadata.fail_expected(kKey, "a power of two of type u32");
  return static_cast<std::uint32_t>(std::get<0>(value->values).front());
}

DType read_ggml_type(ByteReader& reader, const std::string& where) {
  const auto type = reader.read<std::uint32_t>("the type of a tensor");
  for (const auto& [id, dtype] : kGgmlTypes)
    if (id == type) return dtype;
  std::string_view name = "unknown";
  for (const auto& [id, other] : kOtherTypes)
    if (id == type) name = other;
  throw InputError(
      "{}: type {} ({}) is not supported, only F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K and "
      "Q6_K",
      where, type, name);
}

// The sizes of a tensor, fastest first in the file, slowest first here.
std::vector<std::int64_t> read_shape(ByteReader& reader, const std::string& where) {
  const auto n_dims = reader.read<std::uint32_t>("the number of dimensions");
  if (n_dims > kMaxDims) throw InputError("{}: {} dimensions, expected at most {}", where, n_dims, kMaxDims);
  std::vector<std::int64_t> shape(n_dims);
  for (std::int64_t& size : shape) {
    const auto stored = reader.read<std::uint64_t>("a dimension");
    if (stored == 0 || stored > INT64_MAX)
      throw InputError("{}: a dimension of {}, expected 1 to {}", where, stored, INT64_MAX);
    size = static_cast<std::int64_t>(stored);
  }
  std::ranges::reverse(shape);
  return shape;
}

GgufTensor read_tensor_info(ByteReader& reader) {
  const std::size_t at = reader.offset();
  GgufTensor entry{.name = std::string(read_gguf_string(reader, "the name of a tensor"))};
  if (entry.name.size() > kMaxName)
    throw InputError("{}: offset {}: a tensor's name of {} bytes, expected at most {}", reader.where(), at,
                     entry.name.size(), kMaxName);
  const std::string where = fmt::format("{}: tensor '{}'", reader.where(), printable(entry.name));
  entry.shape = read_shape(reader, where);
  entry.dtype = read_ggml_type(reader, where);
  entry.offset = reader.read<std::uint64_t>("the offset of a tensor");
  const std::size_t block = block_size(entry.dtype).values;
  const std::int64_t row = entry.shape.empty() ? 1 : entry.shape.back();
  if (static_cast<std::size_t>(row) % block != 0)
    throw InputError("{}: rows of {} values, expected a multiple of {}, the block of {}", where, row, block,
                     name_of(entry.dtype));
  const auto bytes = byte_size(entry.dtype, entry.shape);
  if (!bytes) throw InputError("{}: shape {} is too large", where, shape_text(entry.shape));
  entry.bytes = *bytes;
  return entry;
}

std::uint64_t padding(std::uint64_t offset, std::uint64_t alignment) {
  return (alignment - offset % alignment) % alignment;
}

// The tensors fill the data one after the other, each padded to the alignment.
void place_tensors(std::vector<GgufTensor>& entries, std::span<const std::byte> data, std::uint64_t alignment,
                   std::string_view where, TensorMap& out) {
  std::uint64_t end = 0;
  for (GgufTensor& e : entries) {
    const std::uint64_t start = end + padding(end, alignment);
    const std::string name = printable(e.name);
    if (e.offset != start)
      throw InputError("{}: tensor '{}' starts at byte {} of the data, expected {}", where, name, e.offset,
                       start);
    if (start > data.size() || e.bytes > data.size() - start)
      throw InputError(
          "{}: truncated: tensor '{}' needs {} bytes from byte {} of the data on, which holds {}", where,
          name, e.bytes, start, data.size());
    end = start + e.bytes;
    Tensor tensor{e.name, e.dtype, std::move(e.shape), data.subspan(start, e.bytes), nullptr};
    if (!out.emplace(e.name, std::move(tensor)).second)
      throw InputError("{}: tensor '{}' appears twice", where, name);
  }
  if (data.size() > end + padding(end, alignment))
    throw InputError("{}: the tensors end at byte {} of the data, but {} bytes follow", where, end,
                     data.size() - end);
}

}  // namespace

GgufMetadata parse_gguf_metadata(std::span<const std::byte> file, std::string_view where) {
  ByteReader reader(file, where);
  check_version(reader);
  read_number_of(reader, "the number of tensors");
  const std::uint64_t n_keys = read_number_of(reader, "the number of keys");
  GgufMetadata metadata{std::string(where)};
  metadata.read(reader, n_keys);
  return metadata;
}

Gguf parse_gguf(std::span<const std::byte> file, std::string_view where) {
  ByteReader reader(file, where);
  check_version(reader);
  const std::uint64_t n_tensors = read_number_of(reader, "the number of tensors");
  const std::uint64_t n_keys = read_number_of(reader, "the number of keys");
  Gguf out{.metadata = GgufMetadata(std::string(where))};
  out.metadata.read(reader, n_keys);
  const std::uint32_t alignment = alignment_of(out.metadata);
  std::vector<GgufTensor> entries;
  for (std::uint64_t i = 0; i < n_tensors; ++i) entries.push_back(read_tensor_info(reader));
  const std::uint64_t pad = padding(reader.offset(), alignment);
  reader.take(n_tensors > 0 ? pad : std::min<std::uint64_t>(pad, reader.remaining()), "the padding");
  place_tensors(entries, file.subspan(reader.offset()), alignment, where, out.tensors);
  return out;
}

bool is_gguf_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::array<char, 4> magic{};
  return RegularFile(path).read(0, std::as_writable_bytes(std::span(magic))) == magic.size() &&
         is_gguf({magic.data(), magic.size()});
}

}  // namespace deeptail
