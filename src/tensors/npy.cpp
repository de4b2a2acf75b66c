#include "tensors/npy.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "core/json.h"
#include "tensors/byte_reader.h"
#include "tensors/layout.h"

namespace deeptail {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

constexpr std::array<std::pair<std::string_view, DType>, 7> kNpyDTypes{{{"<f2", DType::kF16},
                                                                        {"<f4", DType::kF32},
                                                                        {"<f8", DType::kF64},
                                                                        {"<i4", DType::kI32},
                                                                        {"<i8", DType::kI64},
                                                                        {"|u1", DType::kU8},
                                                                        {"|b1", DType::kBool}}};

struct Header {
  std::optional<std::string_view> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
};

// The dictionary literal and nothing else of Python.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::size_t offset, std::string_view where)
      : text_(text), offset_(offset), where_(where) {}

  Header parse() {
    Header header;
    expect('{');
    while (!accept('}')) {
      parse_item(header);
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("nothing after the dictionary");
    if (!header.descr || !header.fortran_order || !header.shape) fail("'descr', 'fortran_order' and 'shape'");
    return header;
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    throw InputError("{}: header at offset {}: expected {}, found '{}'", where_, offset_ + at_, expected,
                     printable(text_.substr(at_, 16)));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  bool accept(char c) { return accept(std::string_view(&c, 1)); }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}'", c));
  }

  void parse_item(Header& header) {
    const std::size_t start = at_;
    const auto key = parse_string();
    expect(':');
    if (key == "descr" && !header.descr) {
      header.descr = parse_string();
    } else if (key == "fortran_order" && !header.fortran_order) {
      header.fortran_order = parse_bool();
    } else if (key == "shape" && !header.shape) {
      header.shape = parse_shape();
    } else {
      at_ = start;
      fail("each of the keys 'descr', 'fortran_order' and 'shape' once");
    }
  }

  std::string_view parse_string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    const bool opened = quote == '\'' || quote == '"';
    const auto end = opened ? text_.find(quote, at_ + 1) : text_.npos;
    if (end == text_.npos) fail("a string (structured arrays are not read)");
    const auto value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }

  bool parse_bool() {
    if (accept("True")) return true;
    if (accept("False")) return false;
    fail("True or False");
  }

  // () or (2,) or (2, 3)
  std::vector<std::int64_t> parse_shape() {
    std::vector<std::int64_t> shape;
    expect('(');
    while (!accept(')')) {
      if (shape.size() == kMaxRank) fail(fmt::format("at most {} dimensions", kMaxRank));
      shape.push_back(parse_dimension());
      if (accept(',')) continue;
      if (shape.size() == 1) fail("',': (2,) is a shape, (2) is not");
      expect(')');
      break;
    }
    return shape;
  }

  std::int64_t parse_dimension() {
    skip_space();
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) fail("a dimension from 0 to 2^63 - 1");
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  std::string_view text_;
  std::size_t offset_;  // of the text in the file
  std::string_view where_;
  std::size_t at_ = 0;
};

DType parse_descr(std::string_view descr, std::string_view where) {
  for (const auto& [known, dtype] : kNpyDTypes)
    if (known == descr) return dtype;
  if (descr.starts_with('>'))
    throw InputError("{}: dtype '{}' is big endian, expected little; save array.astype('<{}')", where,
                     printable(descr), printable(descr.substr(1)));
  throw InputError("{}: unknown dtype '{}', expected <f2, <f4, <f8, <i4, <i8, |u1 or |b1", where,
                   printable(descr));
}

}  // namespace

Tensor parse_npy(std::span<const std::byte> file, std::string_view where) {
  ByteReader reader(file, where);
  if (reader.text(kMagic.size(), "the magic number") != kMagic)
    throw InputError("{}: offset 0: expected \\x93NUMPY, found '{}'", where,
                     printable(as_text(file.first(6))));
  const auto major = reader.read<std::uint8_t>("version");
  const auto minor = reader.read<std::uint8_t>("version");
  if (major < 1 || major > 3 || minor != 0)
    throw InputError("{}: offset 6: .npy version {}.{}, expected 1.0, 2.0 or 3.0", where, major, minor);
  const std::uint32_t header_size = major == 1 ? reader.read<std::uint16_t>("the header length")
                                               : reader.read<std::uint32_t>("the header length");
  if (header_size > reader.remaining())
    throw InputError("{}: offset 8: header length {} reaches beyond the file ({} bytes are left); truncated?",
                     where, header_size, reader.remaining());
  const std::size_t header_at = reader.offset();
  const Header header = HeaderParser(reader.text(header_size, "the header"), header_at, where).parse();

  if (*header.fortran_order)
    throw InputError("{}: is in Fortran (column-major) order; save numpy.ascontiguousarray(array)", where);
  Tensor tensor{"", parse_descr(*header.descr, where), *header.shape, {}, nullptr};
  const auto size = byte_size(tensor.dtype, tensor.shape);
  if (size != reader.remaining())
    throw InputError("{}: offset {}: shape {} of {} needs {} bytes, {} are left in the file; {}", where,
                     reader.offset(), shape_text(tensor.shape), name_of(tensor.dtype),
                     size ? fmt::format("{}", *size) : "too many", reader.remaining(),
                     size && *size < reader.remaining() ? "expected one array per file" : "truncated?");
  tensor.bytes = reader.take(*size, "the values");
  return tensor;
}

}  // namespace deeptail
