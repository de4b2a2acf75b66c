#include "tensors/gguf.h"

#include <gtest/gtest.h>

#include "build_gguf.h"

namespace deeptail {
namespace {

using namespace testing;

Gguf parsed(const std::string& file) { return parse_gguf(as_bytes(file), "f.gguf"); }

GgufBuilder two_tensors() {
  GgufBuilder builder;
  builder.text("general.architecture", "llama").u32("n", 7);
  builder.floats("a", {3, 2}, {-1, 0, 1, 2, 3, 4})
      .tensor("b", {2}, 1, bytes_of<std::uint16_t>({0x3c00, 0xc000}));
  return builder;
}

TEST(Gguf, ReadsTensorsInPlace) {
  for (const std::uint32_t version : {2u, 3u}) {
    GgufBuilder builder = two_tensors();
    builder.version = version;
    const std::string file = builder.build();
    const Gguf gguf = parsed(file);
    ASSERT_EQ(gguf.tensors.size(), 2u);
    const Tensor& a = gguf.tensors.at("a");
    EXPECT_EQ(a.shape, (std::vector<std::int64_t>{2, 3}));  // the fastest dimension comes last
    EXPECT_EQ(to_float(a), (std::vector<float>{-1, 0, 1, 2, 3, 4}));
    EXPECT_EQ(to_float(gguf.tensors.at("b")), (std::vector<float>{1, -2}));
    EXPECT_EQ(gguf.tensors.at("b").bytes.data() + 4, as_bytes(file).data() + file.size());
    EXPECT_EQ(gguf.metadata.count("n", 1, 10), 7u);
    EXPECT_EQ(gguf.metadata.text("general.architecture"), "llama");
  }
}

TEST(Gguf, ReadsEmptyFilesAndOtherAlignments) {
  EXPECT_TRUE(parsed(GgufBuilder().build()).tensors.empty());
  const std::string bare = "GGUF" + little_endian<std::uint32_t>(3) + std::string(16, '\0');
  EXPECT_EQ(parsed(bare).metadata.size(), 0u);
  for (const std::uint32_t alignment : {1u, 8u, 64u, 4096u}) {
    GgufBuilder builder;
    builder.alignment = alignment;
    builder.u32("general.alignment", alignment);
    builder.floats("a", {1}, {1}).floats("b", {1}, {2});
    EXPECT_EQ(to_float(parsed(builder.build()).tensors.at("b")), std::vector<float>{2});
  }
  // The last tensor may be padded too.
  std::string padded = two_tensors().build();
  padded.resize(padded.size() + 28);
  EXPECT_EQ(parsed(padded).tensors.size(), 2u);
}

TEST(Gguf, ReadsValuesOfEveryType) {
  const Gguf gguf = read_gguf(data_path("gguf/blocks.gguf"));
  const GgufMetadata& m = gguf.metadata;
  EXPECT_EQ(m.count("a.u8", 0, 255), 200u);
  EXPECT_EQ(m.count("a.u16", 0, 65535), 60000u);
  EXPECT_EQ(m.count("a.u32", 0, UINT32_MAX), 4000000000u);
  EXPECT_EQ(m.count("a.u64", 0, UINT64_MAX), (1ull << 63) + 1);
  EXPECT_EQ(m.number("a.i8"), -100);
  EXPECT_EQ(m.number("a.i16"), -30000);
  EXPECT_EQ(m.number("a.i32"), -2000000000);
  EXPECT_EQ(m.number("a.i64"), -0x1p62);
  EXPECT_EQ(m.number("a.f32"), static_cast<double>(0.1f));
  EXPECT_EQ(m.number("a.f64"), 0.1);
  EXPECT_TRUE(m.boolean("a.bool"));
  EXPECT_EQ(m.text("a.string"), "caf\xc3\xa9");
  EXPECT_EQ(m.texts("a.strings"), (std::vector<std::string>{"one", "", "two"}));
  EXPECT_EQ(m.integers("a.integers"), (std::vector<std::int64_t>{1, -2, 3}));
  EXPECT_EQ(m.numbers("a.floats"), (std::vector<double>{0.5, -1.5}));
}

TEST(Gguf, SaysWhatAValueIsInstead) {
  const Gguf gguf = read_gguf(data_path("gguf/blocks.gguf"));
  const GgufMetadata& m = gguf.metadata;
  expect_refused([&] { m.text("b"); }, {"blocks.gguf", "key 'b' is missing"});
  expect_refused([&] { m.text("a.u8"); }, {"key 'a.u8'", "found 200 (u8)", "expected a string"});
  expect_refused([&] { m.boolean("a.u8"); }, {"expected a bool"});
  expect_refused([&] { m.count("a.i8", 0, 5); }, {"found -100 (i8)", "a whole number from 0 to 5"});
  expect_refused([&] { m.count("a.u8", 0, 5); }, {"found 200 (u8)", "a whole number from 0 to 5"});
  expect_refused([&] { m.count("a.f32", 0, 5); }, {"a whole number from 0 to 5"});
  expect_refused([&] { m.count("a.bool", 0, 5); }, {"a whole number from 0 to 5"});
  expect_refused([&] { m.count("a.integers", 0, 5); }, {"found an array of i32"});
  expect_refused([&] { m.number("a.string"); }, {"found \"caf", "a finite number"});
  expect_refused([&] { m.number("a.bool"); }, {"a finite number"});
  expect_refused([&] { m.texts("a.string"); }, {"an array of strings"});
  expect_refused([&] { m.integers("a.floats"); }, {"an array of integers"});
  expect_refused([&] { m.numbers("a.integers"); }, {"an array of finite f32"});
  const std::string file = GgufBuilder().f32("x", 1.0f / 0.0f).build();
  expect_refused([&] { parsed(file).metadata.number("x"); }, {"key 'x'", "a finite number"});
}

struct BadGguf {
  const char* name;
  std::string file;
  std::vector<std::string> message;
};
void PrintTo(const BadGguf& bad, std::ostream* out) { *out << bad.name; }

class GgufMalformed : public ::testing::TestWithParam<BadGguf> {};

TEST_P(GgufMalformed, IsRefusedWithItsOwnMessage) {
  auto fragments = GetParam().message;
  fragments.push_back("f.gguf");
  expect_refused([&] { parsed(GetParam().file); }, fragments);
}

BadGguf gguf_with(const char* name, const std::function<void(GgufBuilder&)>& change,
                  std::vector<std::string> message) {
  GgufBuilder builder = two_tensors();
  change(builder);
  return {name, builder.build(), std::move(message)};
}

// One more tensor of `sizes` and `type`, with 4 KiB of data.
BadGguf one_more(const char* name, const std::vector<std::uint64_t>& sizes, std::uint32_t type,
                 std::vector<std::string> message) {
  return gguf_with(
      name, [&](GgufBuilder& b) { b.tensor("c", sizes, type, std::string(4096, '\0')); }, std::move(message));
}

std::vector<BadGguf> bad_headers() {
  const auto version = [](const char* name, std::uint32_t v, std::vector<std::string> message) {
    return gguf_with(
        name, [v](GgufBuilder& b) { b.version = v; }, std::move(message));
  };
  return {
      {"Empty", "", {"truncated at offset 0", "the magic number"}},
      gguf_with("Magic", [](GgufBuilder& b) { b.magic = "GGUG"; }, {"expected 'GGUF'"}),
      {"OnlyMagic", "GGUF", {"truncated at offset 4", "the version"}},
      version("Version0", 0, {"GGUF version 0, expected 2 or 3"}),
      version("Version1", 1, {"GGUF version 1, expected 2 or 3"}),
      version("Version4", 4, {"GGUF version 4, expected 2 or 3"}),
      version("BigEndian", 3u << 24, {"for big-endian machines"}),
      {"NoCounts", "GGUF" + little_endian<std::uint32_t>(3), {"truncated at offset 8"}},
      {"ManyTensors", two_tensors().build(1u << 20, 2), {"the number of tensors is 1048576"}},
      {"ManyKeys", two_tensors().build(2, ~0ull), {"the number of keys is 18446744073709551615"}},
      {"MoreTensorsThanThere", two_tensors().build(4, 2), {"f.gguf"}},
      {"MoreKeysThanThere", two_tensors().build(2, 3), {"f.gguf"}},
      gguf_with("EmptyKey", [](GgufBuilder& b) { b.u32("", 1); }, {"a key of 0 bytes"}),
      gguf_with("LongKey", [](GgufBuilder& b) { b.u32(std::string(65536, 'k'), 1); },
                {"a key of 65536 bytes"}),
      gguf_with("KeyNotAscii", [](GgufBuilder& b) { b.u32("caf\xc3\xa9", 1); }, {"printable ASCII"}),
      gguf_with("KeyTwice", [](GgufBuilder& b) { b.u32("n", 1); }, {"key 'n' appears twice"}),
      gguf_with("UnknownType", [](GgufBuilder& b) { b.key("t", GgufType{13}, "1234"); },
                {"key 't'", "type 13 of a value is unknown"}),
      gguf_with("BadBool", [](GgufBuilder& b) { b.key("t", GgufType::kBool, "\2"); },
                {"key 't'", "expected 0 or 1", "found 2"}),
      gguf_with("LongString",
                [](GgufBuilder& b) { b.key("t", GgufType::kString, little_endian<std::uint64_t>(1u << 25)); },
                {"a string of 33554432 bytes"}),
      gguf_with("StringBeyondFile",
                [](GgufBuilder& b) { b.key("t", GgufType::kString, little_endian<std::uint64_t>(1u << 23)); },
                {"a string needs 8388608 bytes"}),
      gguf_with("NestedArray",
                [](GgufBuilder& b) { b.array("t", GgufType::kArray, 1, std::string(64, '\0')); },
                {"key 't'", "an array of arrays"}),
      gguf_with("ArrayBeyondFile", [](GgufBuilder& b) { b.array("t", GgufType::kU64, 1u << 20, ""); },
                {"key 't'", "an array of 1048576 values of type u64"}),
      gguf_with("ArrayOverflow", [](GgufBuilder& b) { b.array("t", GgufType::kU64, 1ull << 61, ""); },
                {"key 't'", "an array of 2305843009213693952 values"}),
      gguf_with("AlignmentNoPower", [](GgufBuilder& b) { b.u32("general.alignment", 24); },
                {"general.alignment", "found 24 (u32)", "a power of two"}),
      gguf_with("AlignmentZero", [](GgufBuilder& b) { b.u32("general.alignment", 0); }, {"a power of two"}),
      gguf_with("AlignmentType", [](GgufBuilder& b) { b.f32("general.alignment", 32); },
                {"found 32 (f32)", "a power of two of type u32"}),
      gguf_with("AlignmentOther", [](GgufBuilder& b) { b.u32("general.alignment", 64); }, {"f.gguf"}),
  };
}

std::vector<BadGguf> bad_tensors() {
  const std::string good = two_tensors().build();
  return {
      one_more("FiveDims", {1, 1, 1, 1, 1}, 0, {"tensor 'c'", "5 dimensions, expected at most 4"}),
      one_more("ZeroDim", {4, 0}, 0, {"tensor 'c'", "a dimension of 0"}),
      one_more("NegativeDim", {4, ~0ull}, 0, {"tensor 'c'", "a dimension of 18446744073709551615"}),
      one_more("Overflow", {1ull << 32, 1ull << 32}, 0, {"tensor 'c'", "too large"}),
      one_more("OverflowOfBlocks", {1ull << 40, 1ull << 22}, 8, {"tensor 'c'", "too large"}),
      one_more("RowNoBlock", {48, 2}, 8,
               {"tensor 'c'", "rows of 48 values, expected a multiple of 32", "Q8_0"}),
      one_more("ScalarBlock", {}, 8, {"tensor 'c'", "rows of 1 values"}),
      one_more("RowNoLargeBlock", {128}, 12, {"tensor 'c'", "a multiple of 256", "Q4_K"}),
      one_more("TypeGone", {32}, 4, {"tensor 'c'", "type 4 (Q4_2) is not supported"}),
      one_more("TypeIq", {256}, 16, {"tensor 'c'", "type 16 (IQ2_XXS) is not supported"}),
      one_more("TypeQ2", {256}, 10, {"tensor 'c'", "type 10 (Q2_K) is not supported, only F32, F16, BF16"}),
      one_more("TypeUnknown", {256}, 4711, {"tensor 'c'", "type 4711 (unknown)"}),
      one_more("TooLong", {4096}, 0, {"truncated", "'c' needs 16384 bytes from byte 64", "holds 4160"}),
      one_more("DataLeft", {16}, 0, {"end at byte 128 of the data, but 4032 bytes follow"}),
      gguf_with("NameTwice", [](GgufBuilder& b) { b.floats("a", {1}, {1}); }, {"tensor 'a' appears twice"}),
      gguf_with("LongName", [](GgufBuilder& b) { b.floats(std::string(64, 'x'), {1}, {1}); },
                {"name of 64 bytes"}),
      gguf_with("Gap", [](GgufBuilder& b) { b.tensor("c", {1}, 0, "1234", 96); },
                {"'c' starts at byte 96 of the data, expected 64"}),
      gguf_with("Unaligned", [](GgufBuilder& b) { b.tensor("c", {1}, 0, "1234", 36); },
                {"'c' starts at byte 36 of the data, expected 64"}),
      gguf_with("Overlap", [](GgufBuilder& b) { b.tensor("c", {1}, 0, "1234", 0); },
                {"'c' starts at byte 0 of the data, expected 64"}),
      gguf_with("FarOffset", [](GgufBuilder& b) { b.tensor("c", {1}, 0, "1234", ~0ull - 3); },
                {"'c' starts at byte 18446744073709551612"}),
      {"ShortData", good.substr(0, good.size() - 1), {"truncated", "'b' needs 4 bytes"}},
      {"NoData", good.substr(0, good.size() - 36), {"truncated", "'a' needs 24 bytes"}},
  };
}

INSTANTIATE_TEST_SUITE_P(Headers, GgufMalformed, ::testing::ValuesIn(bad_headers()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });
INSTANTIATE_TEST_SUITE_P(Tensors, GgufMalformed, ::testing::ValuesIn(bad_tensors()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

class GgufShards : public ::testing::Test {
 protected:
  std::string shard(std::uint32_t number, std::uint32_t count, std::uint32_t n_tensors,
                    const std::string& tensor, const std::string& file) {
    GgufBuilder builder;
    builder.key("split.no", GgufType::kU16, little_endian(static_cast<std::uint16_t>(number)))
        .key("split.count", GgufType::kU16, little_endian(static_cast<std::uint16_t>(count)))
        .key("split.tensors.count", GgufType::kI32, little_endian(static_cast<std::int32_t>(n_tensors)));
    if (number == 0) builder.text("general.architecture", "llama");
    if (!tensor.empty()) builder.floats(tensor, {1}, {static_cast<float>(number)});
    return folder_.write(file, builder.build());
  }
  void SetUp() override {
    first_ = shard(0, 3, 2, "", "m-00001-of-00003.gguf");  // keys alone
    second_ = shard(1, 3, 2, "a", "m-00002-of-00003.gguf");
    shard(2, 3, 2, "b", "m-00003-of-00003.gguf");
  }
  TempFolder folder_;
  std::string first_, second_;
};

TEST_F(GgufShards, AreReadFromAnyOfThem) {
  for (const std::string& path : {first_, second_}) {
    const Gguf gguf = read_gguf(path);
    ASSERT_EQ(gguf.tensors.size(), 2u);
    EXPECT_EQ(gguf.metadata.text("general.architecture"), "llama");
    EXPECT_EQ(to_float(gguf.tensors.at("b")), std::vector<float>{2});
    EXPECT_EQ(gguf.tensors.at("b").file->path(), folder_.path("m-00003-of-00003.gguf"));
    EXPECT_EQ(read_tensors(path).size(), 2u);
  }
}

TEST_F(GgufShards, TellTheirKeysAlone) {
  for (const std::string& path : {first_, second_})
    EXPECT_EQ(read_gguf_metadata(path).text("general.architecture"), "llama");
  GgufBuilder builder;  // its keys end beyond what is read first
  const std::string large(5 << 20, 'x');
  builder.text("general.architecture", "llama").text("long", large).floats("a", {1}, {1.0f});
  const std::string file = builder.build();
  EXPECT_EQ(read_gguf_metadata(folder_.write("large.gguf", file)).text("long"), large);
  const std::string cut = folder_.write("cut.gguf", file.substr(0, file.size() / 2));
  expect_refused([&] { read_gguf_metadata(cut); }, {"cut.gguf"});
}

TEST_F(GgufShards, MustFitTogether) {
  const auto refused = [&](const std::string& path, const std::vector<std::string>& message) {
    expect_refused([&] { read_gguf(path); }, message);
  };
  shard(2, 3, 2, "a", "m-00003-of-00003.gguf");
  refused(first_, {"m-00003-of-00003.gguf: tensor 'a'", "in an earlier shard"});
  shard(2, 3, 2, "", "m-00003-of-00003.gguf");
  refused(first_, {"'split.tensors.count' says 2 tensors, found 1"});
  shard(1, 3, 2, "b", "m-00003-of-00003.gguf");
  refused(first_, {"say shard 2 of 3, expected 3 of 3"});
  folder_.write("m-00003-of-00003.gguf", two_tensors().build());
  refused(first_, {"say shard 1 of 1, expected 3 of 3"});
  std::filesystem::remove(folder_.path("m-00003-of-00003.gguf"));
  refused(first_, {"m-00003-of-00003.gguf: cannot open"});
  refused(shard(0, 3, 2, "", "renamed.gguf"), {"a name that ends in -00001-of-00003.gguf"});
  refused(shard(3, 3, 2, "", "beyond.gguf"), {"key 'split.no'", "from 0 to 2"});
}

}  // namespace
}  // namespace deeptail
