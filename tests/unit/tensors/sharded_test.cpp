#include <gtest/gtest.h>

#include "build_files.h"

namespace deeptail {
namespace {

using namespace testing;

std::string shard(const std::string& name, float value) {
  return safetensors_file("{\"" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                          bytes_of<float>({value}));
}

class Sharded : public ::testing::Test {
 protected:
  std::string index(const std::string& weight_map) {
    return folder_.write("model.safetensors.index.json",
                         R"({"metadata":{"total_size":8},"weight_map":)" + weight_map + "}");
  }
  void refused(const std::string& weight_map, const std::vector<std::string>& message) {
    const auto path = index(weight_map);
    expect_refused([&] { read_tensors(path); }, message);
  }
  void SetUp() override {
    folder_.write("one.safetensors", shard("a", 1));
    folder_.write("two.safetensors", shard("b", 2));
  }
  TempFolder folder_;
};

TEST_F(Sharded, ReadsEveryShard) {
  const auto path = index(R"({"a":"one.safetensors","b":"two.safetensors"})");
  for (const std::string& from : {path, folder_.path()}) {
    const TensorMap tensors = read_tensors(from);
    ASSERT_EQ(tensors.size(), 2u);
    EXPECT_EQ(to_float(tensors.at("a")), std::vector<float>{1});
    EXPECT_EQ(to_float(tensors.at("b")), std::vector<float>{2});
    EXPECT_EQ(tensors.at("b").file->path(), folder_.path("two.safetensors"));
  }
}

TEST_F(Sharded, RefusesWhatDoesNotFit) {
  refused(R"({"a":"one.safetensors","c":"two.safetensors"})",
          {"two.safetensors: holds tensor 'b'", "does not list"});
  refused(R"({"a":"one.safetensors","b":"two.safetensors","c":"two.safetensors"})",
          {"two.safetensors: tensor 'c' is missing"});
  refused(R"({"a":"one.safetensors","b":"one.safetensors"})", {"one.safetensors: tensor 'b' is missing"});
  refused(R"({"a":"absent.safetensors"})", {"absent.safetensors: cannot open"});
  refused(R"({"a":"model.safetensors.index.json"})", {"expected a safetensors or PyTorch shard", "found a JSON file"});
  refused(R"({"a":3})", {"tensor 'a'", "found 'number'"});
  refused("[]", {"weight_map"});
  for (const char* name :
       {"../one.safetensors", "/etc/passwd", "sub/one.safetensors", "..", ".", "", "a\\\\b", "a\\u0000b"})
    refused(R"({"a":")" + std::string(name) + R"("})", {"tensor 'a'", "a file next to the index"});
  folder_.write("two.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n");
  refused(R"({"a":"one.safetensors","b":"two.safetensors"})",
          {"two.safetensors: is a git-LFS pointer", "12345"});
}

TEST_F(Sharded, RefusesOtherJson) {
  const auto path = folder_.write("config.json", R"({"d_model": 128})");
  expect_refused([&] { read_tensors(path); }, {"config.json", "weight_map"});
  const auto broken = folder_.write("broken.json", R"({"weight_map": )");
  expect_refused([&] { read_tensors(broken); }, {"broken.json: not valid JSON"});
}

}  // namespace
}  // namespace deeptail
