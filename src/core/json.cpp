#include "core/json.h"

#include "deeptail/core.h"

namespace deeptail {

namespace {

constexpr int kMaxDepth = 64;

// Looks at the text without building anything: depth and syntax. (The library's own callback, which could
// watch the depth while it builds, takes quadratic time on many objects.)
class SyntaxCheck : public nlohmann::json_sax<Json> {
 public:
  SyntaxCheck(std::string_view where, std::size_t size) : where_(where), size_(size) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool key(std::string&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) override {
    if (dynamic_cast<const Json::out_of_range*>(&error) != nullptr)
      throw InputError("{}: number out of range near byte {} of {}", where_, position, size_);
    throw InputError("{}: not valid JSON at byte {} of {}", where_, position, size_);
  }

 private:
  bool open() {
    if (++depth_ > kMaxDepth) throw InputError("{}: JSON nested deeper than {} levels", where_, kMaxDepth);
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }

  std::string_view where_;
  std::size_t size_;
  int depth_ = 0;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view where) {
  SyntaxCheck check(where, text.size());
  Json::sax_parse(text.begin(), text.end(), &check);
  return Json::parse(text.begin(), text.end());
}

std::string printable(std::string_view text, std::size_t max_length) {
  std::string out;
  for (const char c : text) {
    if (out.size() >= max_length) return out + "...";
    const auto u = static_cast<unsigned char>(c);
    if (u < 0x20 || u >= 0x7f)
      out += fmt::format("\\x{:02x}", u);
    else
      out += c;
  }
  return out;
}

}  // namespace deeptail
