#include "build_files.h"

#include <unistd.h>

namespace deeptail::testing {

namespace {

std::string local_header(const ZipItem& item) {
  std::string out = "PK\x03\x04";
  out += little_endian<std::uint16_t>(20) + little_endian(item.flags) + little_endian(item.method);
  out += std::string(8, '\0');  // time, checksum
  out += little_endian(static_cast<std::uint32_t>(item.data.size()));
  out += little_endian(static_cast<std::uint32_t>(item.data.size()));
  out += little_endian(static_cast<std::uint16_t>(item.name.size())) + little_endian<std::uint16_t>(0);
  return out + item.name;
}

std::string directory_entry(const ZipItem& item, std::uint64_t local_offset, bool zip64) {
  std::string out = "PK\x01\x02";
  out += little_endian<std::uint16_t>(20) + little_endian<std::uint16_t>(20);
  out += little_endian(item.flags) + little_endian(item.method) + std::string(8, '\0');
  const auto field = [&](std::uint64_t value) {
    return little_endian(zip64 ? 0xffffffffu : static_cast<std::uint32_t>(value));
  };
  std::string extra;
  if (zip64) {
    extra = little_endian<std::uint16_t>(1) + little_endian<std::uint16_t>(24);
    for (const std::uint64_t value :
         {std::uint64_t{item.data.size()}, std::uint64_t{item.data.size()}, local_offset})
      extra += little_endian(value);
  }
  out += field(item.data.size()) + field(item.data.size());
  out += little_endian(static_cast<std::uint16_t>(item.name.size()));
  out += little_endian(static_cast<std::uint16_t>(extra.size())) + std::string(10, '\0');
  return out + field(local_offset) + item.name + extra;
}

}  // namespace

std::string zip_file(const std::vector<ZipItem>& items, const ZipOptions& options) {
  std::string out, directory;
  for (const ZipItem& item : items) {
    directory += directory_entry(item, out.size(), options.zip64);
    out += local_header(item) + item.data;
  }
  const std::uint64_t offset = out.size(), n = items.size();
  out += directory;
  if (options.zip64) {
    const std::uint64_t end_at = out.size();
    out += "PK\x06\x06" + little_endian<std::uint64_t>(44) + std::string(12, '\0');
    out += little_endian(n) + little_endian(n) + little_endian<std::uint64_t>(directory.size()) +
           little_endian(offset);
    out += "PK\x06\x07" + std::string(4, '\0') + little_endian(end_at) + little_endian<std::uint32_t>(1);
  }
  const auto n_short = options.zip64 ? std::uint16_t{0xffff} : static_cast<std::uint16_t>(n);
  out += "PK\x05\x06" + std::string(4, '\0') + little_endian(n_short) + little_endian(n_short);
  out += little_endian(static_cast<std::uint32_t>(directory.size()));
  out += little_endian(options.zip64 ? 0xffffffffu : static_cast<std::uint32_t>(offset));
  return out + little_endian(static_cast<std::uint16_t>(options.comment.size())) + options.comment;
}

std::string torch_file(const std::string& pickle,
                       const std::vector<std::pair<std::string, std::string>>& storages) {
  std::vector<ZipItem> items{{"m/data.pkl", pickle}};
  for (const auto& [key, data] : storages) items.push_back({"m/data/" + key, data});
  return zip_file(items);
}

std::string pickle_string(const std::string& text) {
  return "X" + little_endian(static_cast<std::uint32_t>(text.size())) + text;
}

std::string pickle_tuple(const std::vector<std::int32_t>& values) {
  std::string out = "(";
  for (const auto value : values) out += "J" + little_endian(value);
  return out + "t";
}

std::string pickle_storage(const std::string& type, const std::string& key, std::int32_t n) {
  return "(" + pickle_string("storage") + "ctorch\n" + type + "\n" + pickle_string(key) +
         pickle_string("cpu") + "J" + little_endian(n) + "tQ";
}

std::string pickle_tensor(const std::string& storage, std::int32_t offset, const std::string& size,
                          const std::string& stride) {
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + "J" + little_endian(offset) + size + stride +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}

std::string pickle_dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string out = "}(";
  for (const auto& [key, value] : items) out += pickle_string(key) + value;
  return out + "u";
}

std::string pickle_program(const std::string& body) { return "\x80\x02" + body + "."; }

std::string npy_file(const std::string& dict, const std::string& data, int version) {
  const std::string prefix = std::string("\x93NUMPY") + static_cast<char>(version) + '\0';
  const std::string length = version == 1 ? little_endian(static_cast<std::uint16_t>(dict.size() + 1))
                                          : little_endian(static_cast<std::uint32_t>(dict.size() + 1));
  return prefix + length + dict + "\n" + data;
}

TempFolder::TempFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "deeptail-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  folder_ = name;
}

TempFolder::~TempFolder() {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

std::string TempFolder::write(const std::string& name, const std::string& bytes) const {
  std::ofstream(path(name), std::ios::binary) << bytes;
  return path(name);
}

std::string read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace deeptail::testing
