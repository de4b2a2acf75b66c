#include "core/gzip.h"

#include <zlib.h>

#include <stdexcept>

#include "core/memory.h"
#include "deeptail/core.h"

namespace deeptail {

namespace {

constexpr int kGzip = 16 + MAX_WBITS;  // zlib's way to ask for gzip's header
constexpr std::size_t kBlock = 1 << 18, kLargest = std::size_t{1} << 31;

Bytef* in(std::string_view bytes) { return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data())); }

struct Inflater {
  z_stream stream = {};
  Inflater() {
    if (::inflateInit2(&stream, kGzip) != Z_OK) throw std::runtime_error("zlib does not start");
  }
  ~Inflater() { ::inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

}  // namespace

std::string gzipped(std::string_view text) {
  if (text.size() > kLargest) throw std::length_error("too much text for one gzip file");
  z_stream stream = {};
  if (::deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, 9, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib does not start");
  std::string out(::deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = in(text);
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = in(out);
  stream.avail_out = static_cast<uInt>(out.size());
  const int outcome = ::deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (outcome != Z_STREAM_END) throw std::runtime_error("zlib could not compress");
  return out;
}

bool is_compressed(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string gunzipped(std::string_view bytes, std::string_view where) {
  if (bytes.size() > kLargest) throw InputError("{}: larger than any file of deeptail's", where);
  Inflater inflater;
  z_stream& stream = inflater.stream;
  stream.next_in = in(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int outcome = Z_OK;
  while (outcome == Z_OK) {  // a small file may stand for more than there is memory: asked for block by block
    const std::size_t had = out.size();
    check_memory(fmt::format("{}: its text", where), 2.0 * static_cast<double>(had + kBlock),
                 "it is no file of deeptail's");
    out.resize(had + kBlock);
    stream.next_out = in(out) + had;
    stream.avail_out = static_cast<uInt>(kBlock);
    outcome = ::inflate(&stream, Z_NO_FLUSH);
    out.resize(had + kBlock - stream.avail_out);
  }
  if (outcome != Z_STREAM_END)
    throw InputError("{}: expected a gzip file, found {}", where,
                     outcome == Z_BUF_ERROR ? "one that ends too early" : "bytes that are none");
  if (stream.avail_in > 0) throw InputError("{}: {} bytes follow its end", where, stream.avail_in);
  return out;
}

}  // namespace deeptail
