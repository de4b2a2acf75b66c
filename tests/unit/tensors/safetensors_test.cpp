#include "tensors/safetensors.h"

#include <gtest/gtest.h>

#include "build_files.h"
#include "sizes.h"

namespace deeptail {
namespace {

using namespace testing;

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}";
}

TEST(Safetensors, ReadsTensorsInPlace) {
  const std::string file = safetensors_file(
      "{" + entry("b", "I64", "[1]", "[8,16]") + "," + entry("a", "F32", "[2]", "[0,8]") + "," +
          entry("none", "F16", "[0,7]", "[8,8]") + R"(,"__metadata__":{"format":"pt"}}  )",
      bytes_of<float>({1, 2}) + bytes_of<std::int64_t>({7}));
  const TensorMap tensors = parse_safetensors(as_bytes(file), "f");
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(to_float(tensors.at("a")), (std::vector<float>{1, 2}));
  EXPECT_EQ(to_int64(tensors.at("b")), std::vector<std::int64_t>{7});
  EXPECT_EQ(tensors.at("none").shape, (std::vector<std::int64_t>{0, 7}));
  EXPECT_EQ(tensors.at("none").size(), 0u);
  EXPECT_EQ(tensors.at("b").bytes.data() + 8, as_bytes(file).data() + file.size());
  EXPECT_TRUE(parse_safetensors(as_bytes(safetensors_file("{}", "")), "f").empty());
}

TEST(Safetensors, WhatIsWrittenComesBack) {
  const TempFolder folder;
  const std::vector<float> a = {1, -2, 0.5f, 3, 1e-30f, 6}, b = {7};
  const std::vector<NamedValues> tensors = {{"unembed.b", {1}, b}, {"a", {2, 3}, a}, {"none", {0}, {}}};
  const std::string path = folder.path("w.safetensors");
  write_safetensors(path, tensors, {{"eps", "1e-6"}});
  const TensorMap found = read_tensors(path);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(to_float(found.at("a")), a);
  EXPECT_EQ(found.at("a").shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(to_float(found.at("unembed.b")), b);
  EXPECT_EQ(read_metadata(path), (std::map<std::string, std::string>{{"eps", "1e-6"}}));
  EXPECT_THROW(write_safetensors(folder.path("no/w"), tensors), InputError);
  EXPECT_THROW(write_safetensors(path, std::vector<NamedValues>{{"a", {2}, a}}), std::invalid_argument);
}

TEST(Safetensors, Metadata) {
  const auto metadata = [](const std::string& header) {
    return parse_safetensors_metadata(as_bytes(safetensors_file(header, "")), "f");
  };
  EXPECT_TRUE(metadata("{}").empty());
  EXPECT_EQ(metadata(R"({"__metadata__":{"format":"pt"}})").at("format"), "pt");
  expect_refused([&] { metadata(R"({"__metadata__":{"format":1}})"); },
                 {"f", "expected an object of strings"});
  expect_refused([&] { metadata(R"({"__metadata__":"pt"})"); }, {"f", "expected an object of strings"});
}

// Quadratic time in the number of tensors would take minutes here.
TEST(Safetensors, ReadsManyTensors) {
  const int n = sized(50000, 5000);
  std::string text = "{";
  for (int i = 0; i < n; ++i) text += (i > 0 ? "," : "") + entry(std::to_string(i), "U8", "[0]", "[0,0]");
  const std::string file = safetensors_file(text + "}", "");
  EXPECT_EQ(parse_safetensors(as_bytes(file), "f").size(), static_cast<std::size_t>(n));
}

struct Malformed {
  const char* name;
  std::string file;
  std::vector<std::string> message;
};
void PrintTo(const Malformed& m, std::ostream* out) { *out << m.name; }

class SafetensorsMalformed : public ::testing::TestWithParam<Malformed> {};

TEST_P(SafetensorsMalformed, IsRefusedWithItsOwnMessage) {
  auto fragments = GetParam().message;
  fragments.push_back("f.safetensors");
  expect_refused([&] { parse_safetensors(as_bytes(GetParam().file), "f.safetensors"); }, fragments);
}

Malformed header(const char* name, const std::string& text, std::vector<std::string> message,
                 const std::string& data = "12345678") {
  return {name, safetensors_file(text, data), std::move(message)};
}

std::vector<Malformed> malformed_files() {
  const std::string ok = entry("a", "F32", "[2]", "[0,8]");
  std::string deep = R"({"a":)";
  for (int i = 0; i < 100000; ++i) deep += '[';
  return {
      {"Short", "1234", {"truncated at offset 0", "header length needs 8 bytes, 4 are left"}},
      {"HeaderBeyondFile",
       little_endian<std::uint64_t>(1000) + "{}",
       {"header length 1000 reaches beyond the file"}},
      {"HeaderAboveLimit",
       little_endian<std::uint64_t>(~0ull) + "{}",
       {"18446744073709551615 is above the limit"}},
      header("NoObject", "[1]", {"offset 8", "starts with '{'"}),
      header("Empty", "", {"offset 8", "starts with '{'"}),
      header("NotJson", R"({"a":)", {"not valid JSON at offset"}),
      header("NumberOutOfRange", R"({"a":1e999})", {"out of range"}),
      header("Deep", deep, {"nested value"}),
      header("NestedObject", R"({"a":{"b":{}}})", {"nested value"}),
      header("LongArray", "{" + entry("a", "F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,8]") + "}",
             {"more than 16 numbers"}),
      header("Twice", "{" + ok + "," + ok + "}", {"tensor 'a' appears twice"}),
      header("NotATensor", R"({"a":3})", {"tensor 'a'", "expected an object"}),
      header("NoDType", R"({"a":{}})", {"tensor 'a'", "\"dtype\""}),
      header("UnknownDType", "{" + entry("a", "F8_E4M3", "[8]", "[0,8]") + "}",
             {"'a'", "unknown dtype 'F8_E4M3'"}),
      header("NoShape", R"({"a":{"dtype":"F32"}})", {"tensor 'a'", "\"shape\""}),
      header("NegativeDimension", "{" + entry("a", "F32", "[-2]", "[0,8]") + "}",
             {"'a'", "\"shape\" holds -2"}),
      header("FractionalDimension", "{" + entry("a", "F32", "[2.0]", "[0,8]") + "}",
             {"'a'", "\"shape\" holds 2.0"}),
      header("HugeShape", "{" + entry("a", "F32", "[4294967296,4294967296]", "[0,8]") + "}",
             {"'a'", "too large"}),
      header("WrongShape", "{" + entry("a", "F32", "[3]", "[0,8]") + "}",
             {"'a'", "needs 12 bytes", "span 8"}),
      header("OneOffset", "{" + entry("a", "F32", "[2]", "[0]") + "}", {"'a'", "data_offsets [begin, end]"}),
      header("BackwardOffsets", "{" + entry("a", "F32", "[2]", "[8,0]") + "}", {"'a'", "begin <= end"}),
      header("HugeOffset", "{" + entry("a", "F32", "[2]", "[0,18446744073709551615]") + "}",
             {"'a'", "data_offsets"}),
      header("Truncated", "{" + ok + "}", {"truncated: tensor 'a' ends at byte 8", "holds 7"}, "1234567"),
      header("Overlap", "{" + ok + "," + entry("b", "F32", "[1]", "[4,8]") + "}",
             {"'b' at [4, 8] overlaps 'a'"}),
      header("Hole", "{" + entry("a", "F32", "[1]", "[4,8]") + "}",
             {"misaligned", "'a' starts at byte 4", "expected 0"}),
      header("DataLeft", "{" + ok + "}", {"end at byte 8 of the data, but 1 bytes follow"}, "123456789"),
  };
}

INSTANTIATE_TEST_SUITE_P(Files, SafetensorsMalformed, ::testing::ValuesIn(malformed_files()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace deeptail
