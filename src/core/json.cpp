#include "core/json.h"

#include "deeptail/core.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxDepth = 64;

// Builds the document while it is read. (The library's own builder with a callback, which could watch the
// depth, takes quadratic time on many objects.)
class Builder : public JsonWalk {
 public:
  Builder(std::string_view where, std::size_t size) : where_(where), size_(size) {}

  Json result() && { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(std::int64_t value) override { return put(value); }
  bool number_unsigned(std::uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string&) override { return put(value); }
  bool string(std::string& value) override { return put(std::move(value)); }
  bool binary(Json::binary_t&) override { return true; }  // text holds none
  bool key(std::string& name) override {
    const auto [place, is_new] = open_.back()->get_ref<Json::object_t&>().try_emplace(std::move(name));
    if (!is_new)
      throw InputError("{}: key \"{}\" occurs twice in one object: expected it once", where_,
                       printable(place->first));
    slot_ = &place->second;
    return true;
  }
  bool start_object(std::size_t) override { return open(Json::value_t::object); }
  bool start_array(std::size_t) override { return open(Json::value_t::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) override {
    if (dynamic_cast<const Json::out_of_range*>(&error) != nullptr)
      throw InputError("{}: number out of range near byte {} of {}", where_, position, size_);
    throw InputError("{}: not valid JSON at byte {} of {}", where_, position, size_);
  }

 private:
  // Where the next value goes; a container stays in place while it is open, since its parent does not grow
  // then.
  Json& place() {
    if (open_.empty()) return root_;
    if (open_.back()->is_object()) return *slot_;
    return open_.back()->get_ref<Json::array_t&>().emplace_back();
  }
  bool put(Json value) {
    place() = std::move(value);
    return true;
  }
  bool open(Json::value_t kind) {
    if (open_.size() >= kMaxDepth)
      throw InputError("{}: JSON nested deeper than {} levels", where_, kMaxDepth);
    Json& container = place();
    container = Json(kind);
    open_.push_back(&container);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view where_;
  std::size_t size_;
  Json root_;
  std::vector<Json*> open_;
  Json* slot_ = nullptr;  // of the last key
};

}  // namespace

void walk_json(std::string_view text, JsonWalk& walk) { Json::sax_parse(text.begin(), text.end(), &walk); }

Json parse_json(std::string_view text, std::string_view where) {
  Builder builder(where, text.size());
  walk_json(text, builder);
  return std::move(builder).result();
}

std::string json_text(const Json& document, bool ascii) {
  return document.dump(-1, ' ', ascii, Json::error_handler_t::replace);
}
std::string json_text(const OrderedJson& document, int indent) {
  return document.dump(indent, ' ', false, OrderedJson::error_handler_t::replace);
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
